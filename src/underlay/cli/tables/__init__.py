"""Commands on lakes and tables: `init`, `create`, `tables`, `show`, `history`, `rename` and `drop`."""

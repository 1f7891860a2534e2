"""The command line. Each command's work lives in a module of its own, imported when the command runs."""

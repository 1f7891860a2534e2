"""SQL expressions over rows of a table, and over pairs of its rows and a source's, for update and merge."""

"""The methods of a table that change it."""

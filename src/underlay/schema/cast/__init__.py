"""Rows that users append and rows of older files, as the columns that the table has now."""

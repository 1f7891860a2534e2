"""Decodes byte ranges of files to Arrow columns of the table."""

"""Reads tables of Delta Lake: their log, columns and deletion vectors."""

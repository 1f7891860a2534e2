"""Append, overwrite, and commits of files that many processes staged."""

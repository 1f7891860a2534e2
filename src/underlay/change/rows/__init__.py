"""Appends rows, and commits files that many processes or another engine wrote."""

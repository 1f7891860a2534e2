"""Rows for people: as text, as HTML for notebooks, and as frames of pandas and Polars."""

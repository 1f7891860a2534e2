"""Kept results: the file with their rows, and the rows counted into the bins of a chart."""

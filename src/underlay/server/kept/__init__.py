"""Kept results: their rows counted into the bins of a chart."""

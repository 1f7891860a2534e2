"""Reads many footers at once, and the footers that this process wrote."""

"""Reads CSV a block at a time, and record by record where a block does not parse."""

"""Restores the registry from the store, brings it up to date, and compares the two."""

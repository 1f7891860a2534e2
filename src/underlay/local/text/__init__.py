"""Reads SQL as text: its words, the versions that it names, and which statements may run."""

"""Inputs: which are meant, reading one that must not change, its format and its compression."""

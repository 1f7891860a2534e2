"""Expires old versions: a commit says which are left, then tombstones replace the roots of the others."""

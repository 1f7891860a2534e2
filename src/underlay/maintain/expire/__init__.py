"""Expires old versions: a commit says which are left, then tombstones take the place of their roots."""

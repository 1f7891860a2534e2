"""Changes rows that a table has: finds them by condition or key, deletes and replaces them in one commit."""

"""Changes existing rows: finds them by condition or key, and deletes or replaces them in one commit."""

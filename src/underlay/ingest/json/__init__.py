"""JSON lines decoded and checked by the types of the table."""

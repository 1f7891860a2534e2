"""Creates a table's definition and changes it."""

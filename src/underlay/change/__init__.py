"""What changes a table: append and register."""

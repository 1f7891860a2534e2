"""What was added to a table between two versions."""

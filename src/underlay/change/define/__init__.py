"""What a table is: its definition when it is created, and changes of it."""

"""What a process has open: the context of a lake, a table at a version, conditions of queries."""

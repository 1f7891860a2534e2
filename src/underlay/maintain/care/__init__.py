"""Reports the health of tables, and looks after them automatically."""

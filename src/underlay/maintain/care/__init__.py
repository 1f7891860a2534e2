"""The health of tables, and care that they get by themselves."""

"""Decodes JSON lines and checks them against the table's types."""

"""Finds the records of JSON, decodes them and checks them against the table's types."""

"""Runs SQL that changes tables: each statement is mapped to a verb of the table, which commits once."""

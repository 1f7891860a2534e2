"""The clauses of SQL that changes tables, found in its text."""

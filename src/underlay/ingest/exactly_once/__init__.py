"""Exactly-once protocol: the ledger, claims, and commits of rows together with their sources."""

"""Transactions: the commit, conflicts and their rules, and housekeeping on the way."""

"""Transactions: the commit, conflicts and their rules, and the tidying that a commit does."""

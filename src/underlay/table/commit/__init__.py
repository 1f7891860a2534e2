"""Transactions: conflicts and their rules, the commit itself, and what it tidies on its way."""

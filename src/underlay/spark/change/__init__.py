"""Verbs that change rows with DataFrames: Spark evaluates conditions and values, and one commit applies them."""

"""Statements of the network on Spark: what they may say, the tables that they see, and their rows as Arrow."""

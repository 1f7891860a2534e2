"""Translates filters of Catalyst and of Python sources into predicates, and says which ones we may apply."""

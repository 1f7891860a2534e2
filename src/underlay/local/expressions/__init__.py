"""Evaluates SQL expressions over a table's rows, or over pairs of a table's and a source's rows, for update and
merge.
"""

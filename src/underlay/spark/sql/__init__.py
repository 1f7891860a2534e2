"""Spark SQL on tables of a lake: statements pass through Python, which knows the newest versions and runs changes."""

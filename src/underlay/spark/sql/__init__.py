"""Spark SQL on a lake's tables: statements pass through Python, which knows the newest versions and runs changes."""

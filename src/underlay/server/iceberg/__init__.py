"""Iceberg's REST catalog, read-only: tables by name, each at its newest version."""

"""Exports versions of tables, as any kind, and says which version is exported."""

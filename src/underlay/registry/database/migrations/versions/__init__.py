"""Alembic's revisions. A released one never changes."""

"""Alembic revisions. A released revision never changes."""

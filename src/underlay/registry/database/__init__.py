"""The database itself: where it is, SQLite or PostgreSQL, its tables, migrations and errors."""

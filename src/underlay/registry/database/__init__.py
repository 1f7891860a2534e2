"""The database: its location, SQLite or PostgreSQL, tables, migrations and errors."""

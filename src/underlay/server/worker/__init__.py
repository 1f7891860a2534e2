"""A worker process: it runs one statement at a time for the server, and may be killed at any moment."""

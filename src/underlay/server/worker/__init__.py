"""The worker process: runs one statement at a time for the server, and may be killed at any moment."""

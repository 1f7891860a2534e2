"""The one writer of a hot table: its lock, its commits, the queue before them, and sealing."""

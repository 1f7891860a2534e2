"""Which tables a lake has, how they are created, renamed and dropped, and how one is opened."""

"""Which tables a lake has; creates, renames, drops and opens them."""

"""The tables of a lake: creates, renames, drops and opens them."""

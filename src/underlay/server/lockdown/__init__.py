"""What SQL from the network may say: which statements, relations and functions. Everything else is refused."""

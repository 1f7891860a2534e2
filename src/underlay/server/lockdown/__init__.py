"""What SQL from the network may use: allowed statements, relations and functions. Everything else is refused."""

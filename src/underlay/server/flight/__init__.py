"""Flight SQL on a port of its own: the statements of ADBC and JDBC clients, through the same service."""

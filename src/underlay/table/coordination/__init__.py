"""Jobs, leases and upload intents: objects that processes keep alive so that others leave their work alone."""

"""Jobs, leases and upload intents: objects that processes renew so that others leave their work alone."""

"""Jobs, leases and upload intents: objects that a process renews so that others leave its work alone."""

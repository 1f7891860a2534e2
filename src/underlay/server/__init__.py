"""SQL over HTTP: a service that answers statements from worker processes, for tokens with rights."""

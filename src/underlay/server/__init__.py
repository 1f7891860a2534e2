"""SQL over HTTP: a service that runs statements in worker processes, for callers whose tokens have rights."""

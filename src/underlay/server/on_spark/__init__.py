"""The process that runs statements on Spark: one for a server, many statements at a time, each for a worker."""

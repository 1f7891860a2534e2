"""Takes rows over HTTP into hot partitions: line protocol and NDJSON, acknowledged when they are committed."""

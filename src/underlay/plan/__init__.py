"""Plans a query: which blocks and byte ranges it needs, and why every other block is dropped. Pure."""

"""Which blocks and byte ranges a query needs, and why every other block is left out. Pure."""

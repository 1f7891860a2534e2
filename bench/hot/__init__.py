"""Hot partitions against other systems with the same durability: commits, freshness, bulk rows, reads."""

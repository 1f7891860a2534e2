"""The bounds of a sidecar as the pruner takes them, and which row groups are left."""

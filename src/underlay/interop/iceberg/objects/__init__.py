"""The objects of an export as bytes: manifests with bounds, deletions, metadata."""

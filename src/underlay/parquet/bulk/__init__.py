"""Many footers read as one, and the footers that this process wrote itself."""

"""The compact protocol of Thrift: bytes to a tape of positions, a tree over it, and back to bytes."""

"""Thrift's compact protocol: bytes to a tape of positions, a tree over the tape, and back to bytes."""

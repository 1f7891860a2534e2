"""The bytes of a sidecar: field tables, header, blocks, footers, checksum; encode and decode."""

"""The bytes of a sidecar: field tables, header, blocks, footers, checksum, reading and writing a version."""

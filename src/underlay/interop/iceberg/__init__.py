"""Exports versions as Apache Iceberg tables: metadata, manifests and deletions, in a warehouse."""

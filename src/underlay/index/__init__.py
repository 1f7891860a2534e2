"""The objects that make up a version: keys, catalog, root, file entries, deletion vectors, deltas. Pure."""

"""Bloom filters, from sidecars and from files, and plans with fewer blocks by them."""

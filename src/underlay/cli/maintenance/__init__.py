"""`underlay verify`, `jobs` and `leases`."""

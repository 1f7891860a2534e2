"""Versions, the catalog, jobs and leases of the store as rows of the registry."""

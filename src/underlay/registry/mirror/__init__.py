"""The store's versions, catalog, jobs and leases as rows of the registry."""

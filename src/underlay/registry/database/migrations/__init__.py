"""The registry's schema, one migration per release that changed it. `registry.database.migration` runs them."""

"""The registry's schema, one step for each release that changed it. `registry.database.migration` runs them."""

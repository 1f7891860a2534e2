"""The registry's schema, one step for each release that changed it. `underlay.registry.migration` runs them."""

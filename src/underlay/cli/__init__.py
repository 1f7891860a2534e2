"""The `underlay` command line. Commands import their work when they run, so that help is instant."""

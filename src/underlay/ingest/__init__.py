"""Ingests every source exactly once: find inputs, claim them, read them, commit rows and sources together."""

"""Prunes row groups by the bounds in a sidecar."""

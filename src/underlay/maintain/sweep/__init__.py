"""Sweeps a lake: deletes objects of ours that no version references, after a root that forbids their use."""

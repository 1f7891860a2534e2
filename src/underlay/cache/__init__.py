"""Caches of bytes and decoded values: in memory, bounded by bytes, and on disk for remote stores."""

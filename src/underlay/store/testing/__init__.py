"""Stores for tests and benchmarks: one that counts requests, and one that fails on demand."""

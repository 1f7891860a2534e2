"""Sweeps a lake: commits a root that forbids the use of unreferenced objects of ours, then deletes them."""

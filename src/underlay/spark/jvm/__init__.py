"""Calls into the JVM and back: the gateway, proxies, plan nodes, Hadoop paths and settings."""

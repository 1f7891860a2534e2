"""Calls into the JVM and from it: the gateway, proxies, plan nodes, Hadoop paths and settings."""

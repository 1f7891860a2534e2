"""Calls to and from the JVM: the gateway, proxies, plan nodes, Hadoop paths and settings."""

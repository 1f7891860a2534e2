"""The chain of versions: how one is published, followed and read, and what the process around it gives."""

"""Statements of all clients: waiting, running in workers, kept, cancelled."""

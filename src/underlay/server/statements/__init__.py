"""The statements of all clients: queued, run in workers, kept, cancelled."""

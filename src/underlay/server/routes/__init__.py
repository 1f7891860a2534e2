"""The endpoints: each reads a request, calls the service, and encodes its answer."""

"""A client of the server: statements over HTTP, rows as Arrow, frames and DB-API tuples. Needs nothing but Arrow."""

from underlay.client.connection import RemoteConnection, connect
from underlay.client.dbapi import apilevel, paramstyle, threadsafety

__all__ = ["RemoteConnection", "apilevel", "connect", "paramstyle", "threadsafety"]

"""The connections by which the JVM calls Python: py4j opens one for each of its threads, and closes none when the
thread ends. Each keeps a thread of Python."""

from __future__ import annotations

from threading import active_count

from underlay.spark.gateway import Gateway, call, call_number

_MANY_THREADS = 64
_KEPT = 16


def close_forgotten(gateway: Gateway) -> None:
    """Close the connections that were used longest ago, when there are many. A thread that is alive opens another."""
    if active_count() < _MANY_THREADS:
        return
    client = gateway.callback_client()
    fields = call(call(client, "getClass"), "getSuperclass")
    connections, lock = (gateway.private(fields, name, client) for name in ("connections", "lock"))
    call(lock, "lock")
    try:
        forgotten = [call(connections, "pollFirst") for _ in range(call_number(connections, "size") - _KEPT)]
    finally:
        call(lock, "unlock")
    for one in forgotten:
        call(one, "shutdown")

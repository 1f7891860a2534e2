"""Python objects that the JVM holds, compares, hashes and prints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import WeakSet
from zlib import crc32

from underlay.runtime.locks import ProcessLock
from underlay.spark.jvm.gateway import JavaObject, call, call_text

_MARK = "; "
"""Separates the identity from the remark, which makes no difference."""


class JavaIdentity:
    """The methods that Java calls on every object. Two objects are equal when their identities are.

    `identity` contains everything in which two of them can differ; `remark` is only shown.
    """

    identity: str
    remark = ""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        with _lock:
            _live.add(self)

    def toString(self) -> str:  # noqa: N802  # Java's name
        """The identity, and the remark."""
        return f"{self.identity}{_MARK}{self.remark}"

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """The same for equal ones."""
        return crc32(self.identity.encode()) >> 1

    def equals(self, other: JavaObject | None) -> bool:
        """Whether the other one is equal. py4j passes it as an object of the JVM."""
        return other is not None and call_text(other, "toString").rpartition(_MARK)[0] == self.identity


class Delegating:
    """Delegates methods that it lacks to an object of the JVM: Java's default methods do not reach Python."""

    _inner: JavaObject

    def __getattr__(self, name: str) -> Callable[..., JavaObject]:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(call, self._inner, name)


def find_proxy(found: JavaObject) -> JavaIdentity | None:
    """The Python object behind a reference of the JVM, or None: py4j returns only its proxy."""
    text = call_text(found, "toString")
    with _lock:
        live = list(_live)
    return next((one for one in live if one.toString() == text), None)


_live: WeakSet[JavaIdentity] = WeakSet()
_lock = ProcessLock()

"""The address of a lake's store, for use in other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from underlay.errors import Unsupported
from underlay.scan.read.file_stores import FileStores
from underlay.store import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddress:
    """A store that any process can open. Its options may hold credentials: it is sent to workers, and not shown."""

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_shared(self) -> bool:
        """Whether other processes reach the same objects there."""
        return not self.url.startswith("memory://")

    def open(self) -> FileStores:
        """The store, which a process opens once. Raises Unsupported for a store in another process's memory."""
        if not self.is_shared:
            raise Unsupported(
                "a lake in memory belongs to one process, and tasks cannot reach it",
                place=self.url,
                hint="Use a lake on a disk or an object store.",
            )
        return _open(self.url, tuple(sorted(self.options.items())))


@lru_cache(maxsize=16)
def _open(url: str, options: tuple[tuple[str, str], ...]) -> FileStores:
    given = dict(options)
    return FileStores(open_store(url, given), given)

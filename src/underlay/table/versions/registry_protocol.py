"""The lake's registry, as the layers that read and write the store use it. They query and inform it, but never trust
it: the store confirms each lower bound that it gives before use. No method of it raises or waits for long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from underlay.errors import RegistryRefused
    from underlay.index.catalog import Catalog
    from underlay.index.keys import RevisionKeys
    from underlay.index.root import Root


class Known(NamedTuple):
    """An object of a chain that is said to exist: a lower bound of the head."""

    number: int
    commit_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTable:
    """The active revision of a table, and a version of it."""

    folder: str
    revision: str
    head: Known


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Where to begin looking for the newest of everything."""

    catalog: Known
    table: KnownTable | None


class RegistryPort(Protocol):
    """The metadata database, as this layer uses it."""

    def opening(self, name: str | None) -> Opening | None:
        """What is known about the catalog, and about the table of this name. One statement; None when nothing is
        known."""

    def saw_catalog(self, catalog: Catalog, *, is_own: bool) -> None:
        """This entry of the catalog exists. `is_own`: this process wrote it."""

    def saw_root(self, folder: str, revision: str, root: Root, *, is_own: bool) -> None:
        """This root of the revision, whose table is in `folder`, exists. `is_own`: this process committed it."""

    def saw_job(self, keys: RevisionKeys, revision: str, job: str) -> None:
        """The intent of the job was put or deleted."""

    def saw_reader(self, keys: RevisionKeys, revision: str, reader: str) -> None:
        """The lease of the reader was put or deleted."""

    def saw_run(self, keys: RevisionKeys, revision: str, job: str) -> None:
        """The record of the run was put."""

    def refuse(self, error: RegistryRefused) -> None:
        """The registry describes another store. It must not be asked again."""

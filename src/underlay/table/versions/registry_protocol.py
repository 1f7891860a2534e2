"""What a lake's registry does for the layers that read and write the store. It is asked and told, and never believed:
a lower bound that it gives is proven by the store before it is used, and no method of it raises or waits for long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from underlay.errors import RegistryRefused
    from underlay.index.catalog import Catalog
    from underlay.index.keys import RevisionKeys
    from underlay.index.root import Root


class Known(NamedTuple):
    """An object of a chain that is said to be there: a lower bound of the head."""

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
    """The metadata database as this layer knows it."""

    def opening(self, name: str | None) -> Opening | None:
        """What is known of the catalog, and of the table of this name. One statement; None when nothing is."""

    def saw_catalog(self, catalog: Catalog, *, is_own: bool) -> None:
        """This entry of the catalog is there. `is_own`: this process wrote it."""

    def saw_root(self, folder: str, revision: str, root: Root, *, is_own: bool) -> None:
        """This root of the revision, whose table is in `folder`, is there. `is_own`: this process committed it."""

    def saw_job(self, keys: RevisionKeys, revision: str, job: str) -> None:
        """The intent of the job was put or deleted."""

    def saw_reader(self, keys: RevisionKeys, revision: str, reader: str) -> None:
        """The lease of the reader was put or deleted."""

    def saw_run(self, keys: RevisionKeys, revision: str, job: str) -> None:
        """The record of the run was put."""

    def refuse(self, error: RegistryRefused) -> None:
        """It does not tell of this store. It is not to be asked again."""

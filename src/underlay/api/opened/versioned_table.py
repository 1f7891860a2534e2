"""A table at its newest version or pinned to one: what is read, and whether it may change."""

from __future__ import annotations

from collections.abc import Sequence

from underlay.api.opened.condition import Params, Where, read_where
from underlay.api.opened.context import LakeContext
from underlay.errors import InvalidRequest
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot


class VersionedTable:
    """A table of a lake: its newest version at every call, or pinned to one version. Thread-safe."""

    def __init__(
        self,
        opened: OpenTable,
        context: LakeContext,
        pinned: Head | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        """`pinned` is one version; `snapshot` then is what is read of it, with hot partitions as they were."""
        self._opened = opened
        self._context = context
        self._pinned = pinned
        self._snapshot = snapshot

    @property
    def name(self) -> str:
        """`dataset.table`."""
        return self._opened.name

    def snapshot(self) -> Snapshot:
        """The version that is read, with its hot partitions, as the layers below represent it."""
        if self._snapshot is not None:
            return self._snapshot
        head, hot = self.read_head(), self._context.hot
        if self._pinned is not None or hot is None:
            return self._opened.snapshot(head)
        return hot.snapshot(self._opened, head, self._context.max_staleness_seconds)

    @property
    def state_id(self) -> str:
        """What is read: another text after each commit, and after each append to hot partitions that are read."""
        snapshot = self.snapshot()
        hot = getattr(snapshot, "hot", None)
        return snapshot.root.commit_id + ("" if hot is None else f"+{hot.record.version}")

    @property
    def stores(self) -> FileStores:
        """The store of the lake, and those of registered files."""
        return self._context.stores

    def query(
        self,
        columns: Sequence[str] | None,
        where: Where,
        params: Params | None = None,
        snapshot: Snapshot | None = None,
    ) -> Query:
        """A query of the version that is read, or of another one."""
        if isinstance(columns, str):
            raise InvalidRequest("columns must be a list of names", found=repr(columns), hint=f"Write [{columns!r}].")
        snapshot = snapshot or self.snapshot()
        predicate, rest, rest_columns = read_where(where, params, snapshot)
        names = snapshot.schema.names if columns is None else tuple(snapshot.schema.column(c).name for c in columns)
        return Query(
            snapshot=snapshot,
            columns=names,
            stores=self._context.stores,
            cache=self._context.cache,
            predicate=predicate,
            rest=rest,
            rest_columns=rest_columns,
        )

    def on_version(self, snapshot: Snapshot) -> Query | None:
        """All rows of this version, if it belongs to this table; None if the table is pinned to another version."""
        is_same = self._pinned is None and self.snapshot().keys.folder == snapshot.keys.folder
        return self.query(None, None, None, snapshot) if is_same else None

    def read_head(self) -> Head:
        """The version that is read and its revision, as the layers below represent them."""
        return self._pinned or self._opened.head(self._context.max_staleness_seconds)

    def _read_revision(self) -> Revision:
        """The revision that is read, even when its newest root cannot be read."""
        return self._pinned.revision if self._pinned else self._opened.active(self._context.max_staleness_seconds)

    def writable(self) -> OpenTable:
        """The table, for the layers below to change. Raises InvalidRequest when it is pinned to a version."""
        if self._pinned is not None:
            raise InvalidRequest(
                f"{self.name} was opened at version {self._pinned.root.version}, which never changes",
                hint="Open the table without a version.",
            )
        return self._opened

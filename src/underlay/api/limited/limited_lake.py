"""SQL over the tables that a caller may read. To a statement, all other tables do not exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from underlay.api.changing_lake import ChangingLake
from underlay.api.lake import Lake
from underlay.api.opened.info import TableInfo
from underlay.api.table import Table
from underlay.change.rows.append import Appended
from underlay.change.update.chosen import Choose
from underlay.change.update.result import Changed
from underlay.errors import Forbidden, InvalidRequest
from underlay.index.operation import Operation
from underlay.local.sql.duckdb_errors import no_table
from underlay.local.sql.result import SqlResult
from underlay.local.sql.run import Parameters, is_change, run_sql
from underlay.local.statements.lake import ReadRows
from underlay.local.statements.run import run_statement
from underlay.runtime.locks import cached_property

if TYPE_CHECKING:
    from underlay.local.dataset.source import EngineDataset, NamedScan
    from underlay.local.sql.views import SystemView

May = Callable[[str], bool]
"""Whether a right covers the table of this name."""


class LimitedLake:
    """One statement's view of a lake. `read_versions` are the versions of the tables that it read.

    With `as_of` every table that the statement does not pin itself is read as it was then, and nothing can be changed.
    """

    def __init__(
        self,
        lake: Lake,
        *,
        may_read: May,
        may_write: May,
        as_of: datetime | None = None,
        token: str | None = None,
        views: Mapping[str, SystemView] | None = None,
    ) -> None:
        self._lake = lake
        self._own_views = views or {}
        self._may_read = may_read
        self._may_write = may_write
        self._as_of = as_of
        self._token = token
        self.scans: list[NamedScan] = []
        """The scans of the running query, so far."""
        self.hot_versions: dict[str, int] = {}
        """Versions of hot partitions that were read, by table: with the same versions of tables, answers differ."""
        self.read_versions: dict[str, int] = {}
        """Versions by `dataset.table`, or by `dataset.table@7` if the statement pins one."""

    @cached_property
    def _infos(self) -> list[TableInfo]:
        return [one for one in self._lake.tables() if self._may_read(one.name)]

    @property
    def names(self) -> list[str]:
        """The tables that the caller may read."""
        return [one.name for one in self._infos]

    def sql(self, text: str, parameters: Parameters | None = None) -> SqlResult:
        """As `Lake.sql`. Raises Forbidden for a change of a table that the caller may only read."""
        if not is_change(text):
            return run_sql(text, self._dataset, lambda: self.names, parameters, views=self._views, scans=self.scans)
        if self._as_of is not None:
            raise Forbidden("a statement with as_of only reads", hint="Leave as_of out to change the newest version.")
        changing = _ChangingLimited(self._lake, self._may_read, self._may_write, self._token)
        return run_statement(text, changing, self._dataset, {}, parameters, self._views)

    def _views(self) -> Mapping[str, SystemView]:
        return {**self._lake._system_views(), **self._own_views}

    def plan_sql(self, text: str, parameters: Parameters | None = None) -> Mapping[str, str]:
        """Have `scans` say what the query would scan, without reading. Raises InvalidRequest for a change."""
        if is_change(text):
            raise InvalidRequest("only queries have a plan", hint="EXPLAIN says what a change would do.")
        found = run_sql(
            text,
            self._dataset,
            lambda: self.names,
            parameters,
            views=self._views,
            scans=self.scans,
            is_dry=True,
        )
        return dict(zip(found.schema.names, found.types or (), strict=True))

    def table(
        self, name: str, *, version: int | None = None, tag: str | None = None, as_of: datetime | None = None
    ) -> Table:
        """A table that the caller may read, at a version or as of the statement's time. Raises TableNotFound."""
        known = next((one for one in self.names if one.lower() == name.lower()), None)
        if known is None:
            raise no_table(name, self.names)
        found = self._lake.table(known)
        if version is None and tag is None and as_of is None:
            as_of = self._as_of
            if as_of is None:
                return found
        return found.at(version=version, tag=tag, as_of=as_of)

    def _dataset(self, name: str, version: int | str | None, as_of: datetime | None) -> EngineDataset:
        is_pinned = version is not None or as_of is not None
        found = self._lake._dataset(name, version, as_of if is_pinned else self._as_of)
        number = found.source.snapshot.root.version
        hot = getattr(found.source.snapshot, "hot", None)
        if hot is not None:
            self.hot_versions[name] = hot.record.version
        self.read_versions[f"{name}@{number}" if is_pinned else name] = number
        return found.noted(self.scans)


class _ChangingLimited(ChangingLake):
    def __init__(self, lake: Lake, may_read: May, may_write: May, token: str | None) -> None:
        super().__init__(lake._context, token=token)
        self._may_read = may_read
        self._may_write = may_write

    def names(self) -> list[str]:
        return [name for name in super().names() if self._may_read(name)]

    def table(self, name: str) -> Table:
        """The table that the statement changes: all others are read as datasets."""
        self._check(name)
        return super().table(name)

    def insert(
        self, name: str, read: ReadRows, *, is_of_table: bool, then: Callable[[pa.Table], object] | None = None
    ) -> Appended:
        self._check(name)
        return super().insert(name, read, is_of_table=is_of_table, then=then)

    def change_chosen(
        self,
        name: str,
        choose: Choose,
        operation: Operation,
        *,
        then: Callable[[], object] | None = None,
        dry_run: bool = False,
    ) -> Changed:
        self._check(name)
        return super().change_chosen(name, choose, operation, then=then, dry_run=dry_run)

    def create_table(
        self,
        name: str,
        schema: object,
        *,
        data: pa.RecordBatchReader | None,
        replaces: int | None,
        key: Sequence[str],
        sort_by: Sequence[str],
        partition_by: Sequence[str],
        comment: str | None,
        properties: Mapping[str, str | int],
        checks: Mapping[str, str],
    ) -> Table:
        self._check(name)
        return super().create_table(
            name,
            schema,
            data=data,
            replaces=replaces,
            key=key,
            sort_by=sort_by,
            partition_by=partition_by,
            comment=comment,
            properties=properties,
            checks=checks,
        )

    def rename_table(self, name: str, new_name: str) -> None:
        self._check(name)
        self._check(new_name)
        super().rename_table(name, new_name)

    def drop_table(self, name: str) -> None:
        self._check(name)
        super().drop_table(name)

    def _check(self, name: str) -> None:
        if not self._may_write(name):
            raise Forbidden(f"this token may not change {name}", hint="Ask for a token with --write for its dataset.")

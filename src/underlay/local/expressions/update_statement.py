"""An update as a user writes it: values for columns, and a condition, with parameters and a clock that both share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Generic, TypeVar

import pyarrow as pa

from underlay.change.update.update import RowChange
from underlay.local.expressions.assign import Assignments, Value, check_values
from underlay.local.expressions.row_names import key_columns, name_row
from underlay.local.expressions.scope import Scope, Side
from underlay.local.expressions.texts import SqlText, read_texts
from underlay.prune.parse.parameters import Parameters
from underlay.schema.convert.arrow import to_arrow
from underlay.table.versions.snapshot import Snapshot
from underlay.values.literal import Literal
from underlay.values.parameters import Given

_Condition = TypeVar("_Condition")


class UpdateStatement(Generic[_Condition]):
    """Values by column, and a condition: text, or anything else, which is passed on as it is. Raises InvalidRequest."""

    def __init__(
        self, values: Mapping[str, str | Literal], where: str | _Condition, given: Given | None = None
    ) -> None:
        self._values = dict(check_values(values, "update"))
        self._where = where
        self._given = given
        self._read_once = lru_cache(maxsize=1)(self._read)  # one time for all clocks, also in retries

    def where(self, snapshot: Snapshot) -> tuple[str | _Condition, dict[str, object] | None]:
        """The condition for the columns of a version, and its parameters. Raises InvalidRequest."""
        read, parameters = self._read_once(snapshot.schema.names)
        if not isinstance(self._where, str):
            return self._where, None
        return read[-1].text, read[-1].given(parameters)

    def change(self, snapshot: Snapshot) -> RowChange:
        """What happens to rows of a version. Raises InvalidRequest, UnknownColumn."""
        read, parameters = self._read_once(snapshot.schema.names)
        texts = iter(read)
        values: dict[str, Value] = {
            name: next(texts) if isinstance(value, str) else value for name, value in self._values.items()
        }
        schema = snapshot.schema
        assignments = Assignments(values, schema, Scope([Side(alias=None, schema=to_arrow(schema))], parameters))
        shown = key_columns(snapshot) or assignments.columns(0)
        needed = {*assignments.needed(), *shown} or {schema.names[0]}

        def make(rows: pa.Table) -> pa.Table:
            return assignments.apply([rows], rows, rows.num_rows, name_row(rows, shown))

        return RowChange(columns=tuple(name for name in schema.names if name in needed), make=make)

    def _read(self, columns: tuple[str, ...]) -> tuple[list[SqlText], Parameters]:
        """The texts of the values, then that of the condition, if it is text."""
        texts = [SqlText(place=name, text=value) for name, value in self._values.items() if isinstance(value, str)]
        if isinstance(self._where, str):
            texts.append(SqlText(place="where", text=self._where, is_condition=True))
        return read_texts(texts, columns, self._given)

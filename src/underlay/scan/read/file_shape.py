"""How to get the table's columns from files of one layout: which leaves to decode, and how to convert them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from underlay.index.constants import constant_array
from underlay.index.entry import FileConstant, FileLayout
from underlay.index.intake.file_type import is_int96
from underlay.index.intake.schema_match import source_fields
from underlay.parquet.footer.minimal import LeanSchema, MinimalColumns
from underlay.scan.read.int96 import exact_timestamps
from underlay.schema.cast.adapt import SourceField, adapt_column
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedColumn:
    """One wanted column of the table. Name and source are missing if the files lack it."""

    field: Field
    name_in_file: str | None
    source: SourceField | None
    leaves: tuple[int, ...]
    """Positions of its leaves in the file."""
    is_int96: bool = False
    """Whether it is a scalar stored as INT96."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileShape:
    """The wanted columns of a table in files of one layout."""

    columns: tuple[ShapedColumn, ...]
    file: MinimalColumns
    layout: FileLayout
    _selected: dict[tuple[int, ...], LeanSchema] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    @lru_cache(maxsize=256)
    def of(layout: FileLayout, schema: TableSchema, wanted: tuple[Field, ...]) -> FileShape:
        """The shape in which `wanted` columns of the table lie in files of this layout."""
        file = _file_columns(layout.elements)
        tops = file.schema.root.children
        sources = dict(zip((top.name for top in tops), source_fields(layout, schema), strict=True))
        names = {source.id: name for name, source in sources.items() if source.id is not None}
        known: dict[str, list[int]] = {}
        for leaf in file.schema.leaves:
            if layout.fields[leaf.index] in schema.leaf_by_id:
                known.setdefault(leaf.top.name, []).append(leaf.index)
        columns = []
        for wanted_field in wanted:
            name = names.get(wanted_field.id)
            leaves = tuple(known.get(name, ())) if name is not None else ()
            source = _without_unknown(sources[name]) if name is not None else None
            columns.append(
                ShapedColumn(
                    field=wanted_field,
                    name_in_file=name,
                    source=source,
                    leaves=leaves,
                    is_int96=isinstance(wanted_field.type, Scalar)
                    and any(is_int96(file.schema.leaves[leaf].node) for leaf in leaves),
                )
            )
        return FileShape(columns=tuple(columns), file=file, layout=layout)

    def select(self, leaves: tuple[int, ...]) -> LeanSchema:
        """The schema to decode only these leaves."""
        if leaves not in self._selected:
            self._selected[leaves] = self.file.select(leaves, self.layout.created_by)
        return self._selected[leaves]

    @property
    def int96_leaves(self) -> frozenset[int]:
        """Positions of the wanted leaves that Arrow does not decode exactly."""
        return frozenset(leaf for column in self.columns if column.is_int96 for leaf in column.leaves)

    def exact(self, decoded: pa.Table, in_ms: pa.Table) -> pa.Table:
        """The decoded columns, with those stored as INT96 made exact by means of `in_ms`, the same decoded in
        milliseconds.

        Raises Unsupported when one of their values does not fit the table's type.
        """
        given = set(in_ms.column_names)
        for column in self.columns:
            if column.is_int96 and column.name_in_file in given:
                name = column.name_in_file
                values = exact_timestamps(decoded.column(name), in_ms.column(name), column.field)
                decoded = decoded.set_column(decoded.schema.get_field_index(name), name, values)
        return decoded

    def adapt(
        self,
        decoded: pa.Table,
        row_count: int,
        null_columns: Collection[int],
        constants: Mapping[int, FileConstant] | None = None,
    ) -> pa.Table:
        """The table's columns from a file's; those in `null_columns` are nulls. All by field id."""
        if not self.columns:  # a table that is made of no arrays would have no rows
            return pa.table({"": pa.nulls(row_count)}).select([])
        columns = []
        for column in self.columns:
            constant = constants.get(column.field.id) if constants else None
            if column.name_in_file is None and constant is not None:
                values = constant_array(constant, column.field, row_count)
                columns.append(pa.chunked_array([values], values.type))
            elif column.name_in_file is None:
                columns.append(adapt_column(None, None, column.field, row_count))
            elif column.field.id in null_columns:
                columns.append(_nulls(column.field, row_count))
            else:
                columns.append(
                    adapt_column(decoded.column(column.name_in_file), column.source, column.field, row_count)
                )
        return pa.table(columns, names=[column.field.name for column in self.columns])


def _without_unknown(source: SourceField) -> SourceField:
    """The source without the parts that are not decoded, since the table does not have them."""
    known = tuple(_without_unknown(child) for child in source.children if child.id is not None)
    return SourceField(id=source.id, children=known)


def _nulls(field: Field, row_count: int) -> pa.ChunkedArray[Any]:
    arrow = to_arrow_type(field.type)
    return pa.chunked_array([pa.nulls(row_count, arrow)], arrow)


@lru_cache(maxsize=256)
def _file_columns(elements: bytes) -> MinimalColumns:
    return MinimalColumns(elements)

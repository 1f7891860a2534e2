"""Values that DuckDB would truncate: it has microseconds for instants with a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.schema.arrow_aliases import AnyArray, AnyChunks, AnyType

_HINT = "Round the values, or change the table with the methods of Python: append, upsert, merge."


def cut_column(rows: pa.Table | pa.RecordBatch) -> str | None:
    """A column that has an instant with parts of a microsecond; None without one."""
    for name in instant_columns(rows.schema):
        if any(map(_has_parts, _instants(rows.column(name)))):
            return name
    return None


def refuse_cut(rows: pa.Table | pa.RecordBatch) -> None:
    """Raise InvalidRequest for rows of which DuckDB would change a value, for a statement that changes a table."""
    name = cut_column(rows)
    if name is not None:
        kind = rows.schema.field(name).type
        raise InvalidRequest(f"DuckDB would truncate values of {name}, which are {kind}", hint=_HINT)


@lru_cache(maxsize=256)
def instant_columns(schema: pa.Schema) -> tuple[str, ...]:
    """The columns that may have such an instant."""
    return tuple(field.name for field in schema if _has_instants(field.type))


def _has_instants(kind: AnyType) -> bool:
    parts = (kind.field(at).type for at in range(kind.num_fields))
    return _is_finer(kind) or any(map(_has_instants, parts))


def _is_finer(kind: AnyType) -> bool:
    return isinstance(kind, pa.TimestampType) and kind.unit == "ns" and kind.tz is not None


def _instants(column: AnyChunks | AnyArray) -> Iterator[AnyChunks | AnyArray]:
    """The instants of nanoseconds with a time zone in a column, or in its parts."""
    kind = column.type
    if _is_finer(kind):
        yield column
    chunks: list[AnyArray] = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks if kind.num_fields else ():
        parts = chunk.flatten() if isinstance(kind, pa.StructType) else [_items(chunk)]
        for part in parts:
            yield from _instants(part)


def _items(chunk: AnyArray) -> AnyArray:
    """The items of lists, or the pairs of maps."""
    if isinstance(chunk.type, pa.MapType):
        return pa.StructArray.from_arrays([chunk.keys, chunk.items], ["key", "value"])
    return chunk.flatten()


def _has_parts(instants: AnyChunks | AnyArray) -> bool:
    try:
        instants.cast(pa.timestamp("us", instants.type.tz))
    except pa.ArrowInvalid:
        return True
    return False

"""Footers with something changed: statistics, keys, writer, column orders."""

from __future__ import annotations

from collections.abc import Mapping

from tests.parquet.footers import footer_bytes
from underlay.parquet.footer.chunks import CHUNKS
from underlay.parquet.footer.footer import Footer, KeyValue
from underlay.parquet.footer.splice import set_key_values
from underlay.parquet.thrift.encode import List, Raw, Struct, ThriftBinary, Value, encode
from underlay.parquet.thrift.tree import ThriftKind

MAX, MIN, NULLS, MAX_VALUE, MIN_VALUE, MAX_EXACT, MIN_EXACT, NANS = 1, 2, 3, 5, 6, 7, 8, 9
"""Fields of Statistics."""
KEY_VALUES, CREATED_BY, ORDERS = 5, 6, 7


def opened(data: bytes) -> Footer:
    """The footer of a file's bytes."""
    return Footer.parse(footer_bytes(data))


def with_statistics(footer: Footer, column: int, changes: Mapping[int, Value | None], *, row_group: int = 0) -> Footer:
    """Some fields of one chunk's statistics set, or taken away."""
    tree = footer.tree
    chunk = tree.select(CHUNKS)[row_group * footer.column_count + column]
    meta = tree.fields(int(chunk))[3]
    stored = tree.fields(meta)
    values: dict[int, Value] = {number: tree.value(entry) for number, entry in stored.items()}
    statistics = values.get(12, Struct({}))
    assert isinstance(statistics, Struct)
    fields = {**statistics.fields, **changes}
    values[12] = Struct({number: fields[number] for number in sorted(fields) if fields[number] is not None})
    made = encode(Struct({number: values[number] for number in sorted(values)}))
    return Footer.parse(tree.write({meta: made}))


def with_field(footer: Footer, field: int, value: Value | None) -> Footer:
    """A field of the footer itself set, or taken away."""
    tree = footer.tree
    fields: dict[int, Value] = {
        number: Raw(tree.kind(entry), tree.raw(entry)) for number, entry in tree.fields(0).items()
    }
    fields.pop(field, None)
    if value is not None:
        fields[field] = value
    return Footer.parse(encode(Struct(dict(sorted(fields.items())))))


def written_by(footer: Footer, created_by: str | None) -> Footer:
    """Another writer's name."""
    return with_field(footer, CREATED_BY, None if created_by is None else ThriftBinary(created_by.encode()))


def ordered(footer: Footer, member: int | None) -> Footer:
    """Every column's order the given member of the union, or no column orders."""
    order = Struct({member: Struct({})}) if member is not None else None
    value = None if order is None else List(ThriftKind.STRUCT, (order,) * footer.column_count)
    return with_field(footer, ORDERS, value)


def with_keys(footer: Footer, *pairs: KeyValue) -> Footer:
    """Other key-value metadata."""
    return Footer.parse(set_key_values(footer, pairs))

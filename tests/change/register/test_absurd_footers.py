"""Files whose footers say what cannot be: an error that names the file and changes nothing, in bounded time and memory.

No checksum covers a footer, so every number in one may be anything.
"""

from __future__ import annotations

import io
import random
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, memory, quick, rows
from tests.gate import sized
from tests.parquet.footers import footer_bytes, written
from underlay.errors import UnderlayError
from underlay.parquet.footer.chunks import CHUNKS, META
from underlay.parquet.footer.tail import MAGIC, seal
from underlay.parquet.thrift.tree import ThriftTree, parse
from underlay.parquet.thrift.wire import INTEGER_BITS, ThriftKind, write_integer, write_varint
from underlay.store.store import Store

MOST_BYTES = 64 << 20
"""Of memory, for a file of 3 kB."""
DATA = written(rows(range(30)), row_group_size=10)
FOOTER = footer_bytes(DATA)
PAGES = DATA[: len(DATA) - len(FOOTER) - 8]
KEY = "in/absurd.parquet"


@pytest.fixture
def store() -> Store:
    return memory()


@pytest.fixture
def table(store: Store) -> underlay.Table:
    return quick(store).create_table(NAME, SCHEMA)


def outcome(store: Store, table: underlay.Table, data: bytes) -> str:
    """Register a file and read it: refused, unreadable, read, or read as another file. An error names the file, and
    the table is as it was in the end."""
    store.put(KEY, data)
    version = table.version
    tracemalloc.start()
    refused = error_of(lambda: table.register(f"{store.url}/{KEY}"))
    unreadable = None if refused else error_of(lambda: table.scan().to_arrow())
    assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    tracemalloc.stop()
    if refused is not None:
        assert table.version == version
    for error in (refused, unreadable):
        assert error is None or KEY in str(error), f"the error does not name the file: {error}"
    found = None if refused or unreadable else table.scan().to_arrow().sort_by("id")
    if refused is None:
        table.rollback(0)
    if found is None:
        return "refused" if refused else "unreadable"
    return "read" if found.equals(rows(range(30)).cast(found.schema)) else "read as another"


def error_of(act: Callable[[], object]) -> UnderlayError | None:
    try:
        act()
    except UnderlayError as error:
        return error
    return None


def absurd_numbers(tree: ThriftTree) -> Iterator[bytes]:
    for entry in range(len(tree)):
        bits = INTEGER_BITS.get(tree.kind(entry))
        if bits is not None:
            for value in (-1, 0, 1, 1 << (bits - 2), (1 << (bits - 1)) - 1, -(1 << (bits - 1))):
                yield tree.write({entry: write_integer(value)})


def test_every_number_may_be_anything(store: Store, table: underlay.Table):
    footers = list(absurd_numbers(parse(FOOTER)))
    assert len(footers) > 500
    chosen = random.Random(5).sample(footers, sized(60, len(footers)))
    found = [outcome(store, table, PAGES + seal(footer)) for footer in chosen]
    assert {"refused", "read", "unreadable"} == set(found)


def test_every_byte_may_be_anything(store: Store, table: underlay.Table):
    chance = random.Random(6)
    refused = 0
    for _ in range(sized(30, 3000)):
        footer = bytearray(FOOTER)
        for _ in range(chance.choice((1, 1, 3, 20))):
            footer[chance.randrange(len(footer))] = chance.randrange(256)
        # One in which a name differs, for example, is another file, and not absurd.
        refused += outcome(store, table, PAGES + seal(bytes(footer))) == "refused"
    assert refused


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_column_of_rows_without_values_and_bytes_is_refused(store: Store, table: underlay.Table, column: int):
    tree = parse(FOOTER)
    value_count, size = (int(tree.select((*CHUNKS, META, field))[column]) for field in (5, 7))
    footer = tree.write({value_count: write_integer(0), size: write_integer(0)})
    assert outcome(store, table, PAGES + seal(footer)) == "refused"


def with_length(length: int) -> bytes:
    return PAGES + FOOTER + length.to_bytes(4, "little") + MAGIC


@pytest.mark.parametrize("length", [0, 1, 7, len(FOOTER) - 1, len(FOOTER) + 1, len(DATA), 1 << 31, (1 << 32) - 1])
def test_a_length_that_is_not_the_footers_is_refused(store: Store, table: underlay.Table, length: int):
    assert outcome(store, table, with_length(length)) == "refused"


def field(header: int, kind: ThriftKind, body: bytes) -> bytes:
    return bytes([header << 4 | kind]) + body


STRUCTS = bytes([0xF0 | ThriftKind.STRUCT])
"""The beginning of a list of structs, before their number."""
ELEMENT = field(4, ThriftKind.BINARY, b"\x01a") + field(1, ThriftKind.I32, write_integer(1)) + b"\0"
"""A group of one child: name 4, children 5."""
VERSION = field(1, ThriftKind.I32, write_integer(1))
ABSURD = {
    "a list of two billion structs": VERSION + field(1, ThriftKind.LIST, STRUCTS + write_varint(2**31 - 1)),
    "a list of 2^62 structs": VERSION + field(1, ThriftKind.LIST, STRUCTS + write_varint(2**62)),
    "a text of four billion bytes": VERSION + field(5, ThriftKind.BINARY, write_varint(2**32 - 1)),
    "a number without an end": field(1, ThriftKind.I64, b"\xff" * 500),
    "structs in structs": field(1, ThriftKind.STRUCT, b"") * 50_000,
    "lists in lists": VERSION + field(14, ThriftKind.LIST, bytes([0x10 | ThriftKind.LIST]) * 50_000),
    "many empty lists": VERSION
    + field(14, ThriftKind.LIST, bytes([0xF0 | ThriftKind.LIST]) + write_varint(5_000) + b"\x09" * 5_000),
    "a schema of 2,000 levels": VERSION
    + field(1, ThriftKind.LIST, STRUCTS + write_varint(2_000) + ELEMENT * 2_000)
    + field(1, ThriftKind.I64, write_integer(0))
    + field(1, ThriftKind.LIST, bytes([ThriftKind.STRUCT]))
    + b"\0",
    "nothing": b"\0",
    "zeros": bytes(1000),
}


@pytest.mark.parametrize("footer", ABSURD.values(), ids=ABSURD)
def test_what_is_no_footer_is_refused(store: Store, table: underlay.Table, footer: bytes):
    assert outcome(store, table, PAGES + seal(footer)) == "refused"


def test_the_bad_one_of_many_files_is_named(store: Store, table: underlay.Table):
    for number in range(20):
        buffer = io.BytesIO(written(rows(range(number, number + 3))))
        store.put(f"in/good-{number:02}.parquet", buffer.getvalue())
    tree = parse(FOOTER)
    rows_entry = next(entry for entry in tree.fields(0).values() if tree.kind(entry) is ThriftKind.I64)
    store.put(KEY, PAGES + seal(tree.write({rows_entry: write_integer(7)})))
    with pytest.raises(UnderlayError, match=KEY):
        table.register(f"{store.url}/in/*.parquet")
    assert table.version == 0

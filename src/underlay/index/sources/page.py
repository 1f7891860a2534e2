"""Pages of the source tree: small Arrow IPC files, compressed with zstd.

    leaf    uri, identity, version, status, owner, row_count, error, content, options      one row for each source
    inner   low, id, size_bytes, crc, entry_count                                          one row for each child page

Rows ascend strictly by `uri` or `low`, compared as UTF-8 bytes. `low` is the least uri below a child. A page's height
is in its schema's metadata; the children of a page are one lower, and leaves have height 0. A page is only ever read
through its PageRef, whose size and CRC-32 it must match. Older leaves lack `content` and `options`: these are null
then, and a leaf in which all are null is still written without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deflate import crc32

from underlay.errors import ChecksumMismatch, Damaged, Malformed, Truncated, Unsupported
from underlay.index.root import PageRef, SourceRecord

MAX_HEIGHT = 7
"""Of the tree's root. A tree of the smallest pages that are ever written holds 15^8 sources at that height."""

_HEIGHT = b"underlay.height"
_FORMAT = {b"underlay.page": b"1"}
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")

_OPTIONAL = ("owner", "error", "content", "options")
_LATER = ("content", "options")
"""Columns of a leaf that the first pages did not have."""


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([field.with_nullable(field.name in _OPTIONAL) for field in pa.schema(columns)])


_LEAF = _schema(
    uri=pa.string(),
    identity=pa.string(),
    version=pa.int64(),
    status=pa.string(),
    owner=pa.string(),
    row_count=pa.int64(),
    error=pa.string(),
    content=pa.string(),
    options=pa.string(),
)
_FIRST_LEAF = pa.schema([field for field in _LEAF if field.name not in _LATER])
_INNER = _schema(low=pa.string(), id=pa.string(), size_bytes=pa.int64(), crc=pa.uint32(), entry_count=pa.int64())


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A page as its parent describes it: `low` is its least uri, and all are less than `high`. Both are None where
    unknown, as for the root page."""

    ref: PageRef
    low: str | None
    high: str | None = None


def leaf_rows(records: Sequence[SourceRecord]) -> pa.Table:
    """The rows of a leaf, for records that ascend by uri."""
    columns = [[getattr(record, name) for record in records] for name in _LEAF.names]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, _LEAF, strict=True)], schema=_LEAF)


def leaf_records(rows: pa.Table) -> list[SourceRecord]:
    """The records of a leaf's rows."""
    return [SourceRecord(*row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]


def inner_rows(children: Sequence[Child]) -> pa.Table:
    """The rows of an inner page."""
    refs = [child.ref for child in children]
    columns = [[child.low for child in children], *([getattr(r, name) for r in refs] for name in _INNER.names[1:])]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, _INNER, strict=True)], schema=_INNER)


def inner_children(rows: pa.Table, node: Child) -> list[Child]:
    """The children of an inner page, whose rows these are."""
    lows, *refs = (column.to_pylist() for column in rows.columns)
    highs = [*lows[1:], node.high]
    return [
        Child(
            ref=PageRef(id=id_, size_bytes=size, crc=crc, entry_count=count, height=node.ref.height - 1),
            low=low,
            high=high,
        )
        for low, high, id_, size, crc, count in zip(lows, highs, *refs, strict=True)
    ]


def row_weights(rows: pa.Table) -> npt.NDArray[np.int64]:
    """About how many bytes each row takes, before compression."""
    weights = np.zeros(len(rows), np.int64)
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_string(field.type):
            weights += pc.fill_null(pc.binary_length(column), 0).to_numpy() + 4
        else:
            weights += field.type.bit_width // 8
    return weights


def encode_page(rows: pa.Table, height: int, page_id: str) -> tuple[Child, bytes]:
    """The page with these rows, at least one, and its bytes."""
    if height > MAX_HEIGHT:
        raise Unsupported("the source tree would get too high", expected=f"at most {MAX_HEIGHT}", found=height)
    sink = pa.BufferOutputStream()
    rows = rows if height else _without_nulls(rows)
    schema = rows.schema.with_metadata({**_FORMAT, _HEIGHT: b"%d" % height})
    with pa.ipc.new_file(sink, schema, options=_OPTIONS) as writer:
        writer.write_table(rows.combine_chunks())
    data = sink.getvalue().to_pybytes()
    count = int(pc.sum(rows["entry_count"]).as_py()) if height else len(rows)
    ref = PageRef(id=page_id, size_bytes=len(data), crc=crc32(data), entry_count=count, height=height)
    return Child(ref=ref, low=rows.column(0)[0].as_py()), data


def decode_page(data: bytes | memoryview, node: Child) -> pa.Table:
    """The rows of the page that `node` describes. Raises Damaged, naming the page, when it is not that page."""
    try:
        return _checked_rows(data, node)
    except Damaged as error:
        raise error.at(f"page {node.ref.id} of the source tree") from None


def _checked_rows(data: bytes | memoryview, node: Child) -> pa.Table:
    ref = node.ref
    if len(data) != ref.size_bytes:
        raise Truncated("the size is not the one that its parent says", expected=ref.size_bytes, found=len(data))
    if (found := crc32(data)) != ref.crc:
        raise ChecksumMismatch("damaged", expected=f"{ref.crc:#010x}", found=f"{found:#010x}")
    try:
        rows = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        rows.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise Malformed(f"not an Arrow file: {error}") from error
    _check_structure(rows, node)
    plain = rows.combine_chunks().replace_schema_metadata(None)
    return plain if node.ref.height else _with_nulls(plain)


def _without_nulls(leaf: pa.Table) -> pa.Table:
    """The form of the first pages, when the newer columns are all null, so that older software can read it."""
    is_first = all(leaf[name].null_count == len(leaf) for name in _LATER)
    return leaf.select(_FIRST_LEAF.names) if is_first else leaf


def _with_nulls(leaf: pa.Table) -> pa.Table:
    """The leaf with all current columns."""
    if leaf.schema.equals(_LEAF):
        return leaf
    nulls = [pa.nulls(len(leaf), pa.string()) for _ in _LATER]
    return pa.Table.from_arrays([*leaf.columns, *nulls], schema=_LEAF)


def _check_structure(rows: pa.Table, node: Child) -> None:
    height = node.ref.height
    metadata = {**_FORMAT, _HEIGHT: b"%d" % height}
    expected = [one.with_metadata(metadata) for one in ((_INNER,) if height else (_LEAF, _FIRST_LEAF))]
    if not any(rows.schema.equals(one, check_metadata=True) for one in expected):
        raise Malformed("the wrong schema", expected=f"a page of height {height}")
    if any(c.null_count for c, f in zip(rows.columns, rows.schema, strict=True) if not f.nullable):
        raise Malformed("a value is missing")
    count = (pc.sum(rows["entry_count"]).as_py() or 0) if height else len(rows)
    if count != node.ref.entry_count or not len(rows):
        raise Malformed(
            "the number of entries is not the one that its parent says", expected=node.ref.entry_count, found=count
        )
    keys = rows.column(0).combine_chunks()
    if not pc.all(pc.less(keys[:-1], keys[1:]), min_count=0).as_py():
        raise Malformed("uris are not in ascending order")
    first, last = keys[0].as_py(), keys[-1].as_py()
    if node.low not in (None, first) or (node.high is not None and last >= node.high):
        raise Malformed("uris are not those that its parent says", expected=node.low, found=first)

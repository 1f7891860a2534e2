"""Splices footers: picks, reorders, moves and joins row groups, and copies everything else byte for byte.

A footer names its data by position in the file. When column chunks are copied to another place, all positions move by
the same distance; `SHIFTING` lists the fields that hold one. Writers differ on whether 0 is a position or means absent:
no position of data is 0, since every file begins with its magic, so 0 stays 0, and so does anything below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from underlay.errors import InvalidRequest, SchemaMismatch, Unsupported
from underlay.parquet.footer.chunks import CHUNKS, META, SHIFTING
from underlay.parquet.footer.footer import ROW_GROUPS, Footer, KeyValue
from underlay.parquet.thrift.encode import I16, I32, I64, List, Raw, Struct, ThriftBinary, Value, encode, list_header
from underlay.parquet.thrift.scanner import read_list_header
from underlay.parquet.thrift.tree import ITEM, Entries, ThriftKind
from underlay.parquet.thrift.wire import read_integer, write_integer
from underlay.values.ranges import ByteRange

NUM_ROWS = 3
KEY_VALUES = 5
GROUP_FILE_OFFSET = 5
GROUP_ORDINAL = 7
MAX_ORDINAL = 2**15 - 1
BLOOM_OFFSET = 14
BLOOM_LENGTH = 15


ChunkNumbers = Mapping[tuple[int, int, tuple[int, ...]], int]
"""New values of numbers of column chunks, by row group of the new footer, column, and path of the field in it."""


class SplicePart(NamedTuple):
    """Row groups of one footer, in the order wanted, and how far their data moves."""

    footer: Footer
    indices: Sequence[int]
    delta: int


def shift_offsets(footer: Footer, delta: int) -> bytes:
    """The footer of the same file with all data `delta` bytes further on."""
    _check_plain(footer, "footer")
    return footer.tree.write(moved_positions(footer, dict.fromkeys(range(footer.row_group_count), delta)))


def join_alike(footers: Sequence[bytes]) -> tuple[Footer, list[int]] | None:
    """One footer with the row groups of all as they are, and how many each has; None unless they differ in row groups
    and numbers of rows only. It costs about what parsing one of them with that many row groups does. Raises Malformed.
    """
    lead = Footer.parse(footers[0])
    tree = lead.tree
    fields = tree.fields(0)
    if lead.is_encrypted or fields.get(NUM_ROWS, 0) + 1 != fields[ROW_GROUPS]:
        return None
    rows_begin, rows_end = (int(ends[fields[NUM_ROWS]]) for ends in (tree.begin, tree.end))
    header = lead.data[rows_end : int(tree.begin[fields[ROW_GROUPS]])]
    beginning, ending = lead.data[:rows_begin], lead.data[int(tree.end[fields[ROW_GROUPS]]) :]
    row_count, counts, pieces = 0, [], []
    for raw in footers:
        if not (raw.startswith(beginning) and raw.endswith(ending)):
            return None
        rows, after = read_integer(raw, rows_begin, ThriftKind.I64)
        if not raw.startswith(header, after):
            return None
        count, kind, begin = read_list_header(raw, after + len(header))
        if kind != ThriftKind.STRUCT or begin > len(raw) - len(ending):
            return None
        row_count += rows
        counts.append(count)
        pieces.append(raw[begin : len(raw) - len(ending)])
    start = b"".join([beginning, encode(I64(row_count)), header, list_header(ThriftKind.STRUCT, sum(counts))])
    joined = Footer.parse(b"".join([start, *pieces, ending]))
    begins = joined.tree.begin[joined.tree.select((ROW_GROUPS, ITEM))]
    expected = len(start) + np.cumsum([0, *map(len, pieces[:-1])])
    firsts = np.cumsum([0, *counts[:-1]])
    if 0 in counts or not np.array_equal(begins[firsts], expected):
        return None  # a piece is not as many row groups as its footer says
    return joined, counts


def take_row_groups(footer: Footer, indices: Sequence[int]) -> bytes:
    """The footer with only these row groups, in this order; an index may occur more than once."""
    return splice([SplicePart(footer, indices, 0)])


def splice(parts: Iterable[SplicePart], numbers: ChunkNumbers | None = None) -> bytes:
    """One footer with the row groups of several, whose schemas must be equal byte for byte.

    Everything except the row groups and the number of rows comes from the first. A group's ordinal, if it has one,
    becomes its new position. `numbers` replace those that chunks have, and positions that would move. Footers of files
    with encrypted columns are refused, here and by the other functions, because they are signed.
    """
    wanted = list(parts)
    if not wanted:
        raise InvalidRequest("there is no footer to splice", expected="at least 1", found=0)
    first = wanted[0].footer
    for number, part in enumerate(wanted):
        _check_part(first, part, number)
    groups: list[bytes] = []
    for footer, deltas in _batches(wanted):
        groups += _row_groups(footer, deltas, len(groups), numbers or {})
    num_rows = sum(int(part.footer.row_groups.num_rows[list(part.indices)].sum()) for part in wanted)
    fields = first.tree.fields(0)
    return first.tree.write(
        {
            fields[NUM_ROWS]: encode(I64(num_rows)),
            fields[ROW_GROUPS]: list_header(ThriftKind.STRUCT, len(groups)) + b"".join(groups),
        }
    )


def set_key_values(footer: Footer, key_values: Iterable[KeyValue]) -> bytes:
    """The footer with these keys and values in place of its own. No pairs leave an empty list."""
    pairs = List(ThriftKind.STRUCT, tuple(_pair(key, value) for key, value in key_values))
    _check_plain(footer, "footer")
    tree = footer.tree
    fields = tree.fields(0)
    if KEY_VALUES in fields:
        return tree.write({fields[KEY_VALUES]: encode(pairs)})
    values: dict[int, Value] = {field: Raw(tree.kind(entry), tree.raw(entry)) for field, entry in fields.items()}
    values[KEY_VALUES] = pairs
    return encode(Struct(dict(sorted(values.items()))))


def set_bloom_filters(footer: Footer, places: Mapping[tuple[int, int], ByteRange]) -> bytes:
    """The footer that says where the bloom filters of some chunks, by row group and column, lie in the file."""
    _check_plain(footer, "footer")
    tree = footer.tree
    entries = tree.select((*CHUNKS, META), (ThriftKind.STRUCT,)).reshape(footer.row_group_count, footer.column_count)
    replaced = {}
    for chunk, place in places.items():
        entry = int(entries[chunk])
        values: dict[int, Value] = {
            field: Raw(tree.kind(child), tree.raw(child)) for field, child in tree.fields(entry).items()
        }
        values[BLOOM_OFFSET], values[BLOOM_LENGTH] = I64(place.begin), I32(place.end - place.begin)
        replaced[entry] = encode(Struct(dict(sorted(values.items()))))
    return tree.write(replaced)


def _pair(key: bytes, value: bytes | None) -> Struct:
    return Struct({1: ThriftBinary(key)} if value is None else {1: ThriftBinary(key), 2: ThriftBinary(value)})


def _check_plain(footer: Footer, place: str) -> None:
    if footer.is_encrypted:
        raise Unsupported("the footer of an encrypted file is signed and cannot be changed", place=place)


def _check_part(first: Footer, part: SplicePart, number: int) -> None:
    _check_plain(part.footer, f"footer {number}")
    if NUM_ROWS not in part.footer.tree.fields(0):
        raise SchemaMismatch("a footer does not say how many rows it has", place=f"footer {number}")
    if part.footer.schema.raw != first.schema.raw:
        raise SchemaMismatch(
            "the schemas of the footers differ", place=f"footer {number}", hint="Rewrite one of the files."
        )
    count = part.footer.row_group_count
    for index in part.indices:
        if not 0 <= index < count:
            raise InvalidRequest(
                "there is no such row group", place=f"footer {number}", expected=f"0 to {count - 1}", found=index
            )


def _batches(parts: Iterable[SplicePart]) -> Iterator[tuple[Footer, dict[int, int]]]:
    """Neighbouring row groups of one footer, in order and none of them twice, with how far each moves."""
    footer: Footer | None = None
    deltas: dict[int, int] = {}
    for part in parts:
        for index in part.indices:
            if footer is not None and (part.footer is not footer or index in deltas):
                yield footer, deltas
                deltas = {}
            footer = part.footer
            deltas[index] = part.delta
    if footer is not None:
        yield footer, deltas


def _row_groups(footer: Footer, deltas: Mapping[int, int], ordinal: int, numbers: ChunkNumbers) -> list[bytes]:
    """The bytes of these row groups, moved and numbered from `ordinal` on."""
    tree = footer.tree
    entries = tree.select((ROW_GROUPS, ITEM))
    places = dict(zip(deltas, range(ordinal, ordinal + len(deltas)), strict=True))
    replaced = moved_positions(footer, deltas)
    for entry, index in _owned(entries, tree.select((ROW_GROUPS, ITEM, GROUP_ORDINAL), (ThriftKind.I16,))):
        if index in places:
            replaced[entry] = _ordinal(places[index])
    chunks = tree.select(CHUNKS, (ThriftKind.STRUCT,))
    for path in {path for *_, path in numbers}:
        for entry, chunk in _owned(chunks, tree.select((*CHUNKS, *path), (ThriftKind.I32, ThriftKind.I64))):
            index, column = divmod(chunk, footer.column_count)
            number = numbers.get((places[index], column, path)) if index in places else None
            if number is not None:
                replaced[entry] = write_integer(number)
    inside: dict[int, dict[int, bytes]] = {index: {} for index in deltas}
    changed = np.fromiter(replaced, np.int64, len(replaced))
    for entry, index in _owned(entries, changed):
        inside[index][entry] = replaced[entry]
    return [tree.write(inside[index], entry=int(entries[index])) for index in deltas]


def _owned(owners: Entries, entries: Entries) -> Iterator[tuple[int, int]]:
    """Each entry, with the number of the last of `owners` that is not after it."""
    return zip(entries.tolist(), (np.searchsorted(owners, entries, side="right") - 1).tolist(), strict=True)


def _ordinal(place: int) -> bytes:
    if place > MAX_ORDINAL:
        raise Unsupported("there are too many row groups to number", expected=f"at most {MAX_ORDINAL + 1}")
    return encode(I16(place))


def moved_positions(footer: Footer, deltas: Mapping[int, int]) -> dict[int, bytes]:
    """New bytes, by entry of the tree, for every position that changes in row groups that move so far."""
    if not any(deltas.values()):
        return {}
    tree = footer.tree
    paths = [CHUNKS + path for path in SHIFTING] + [(ROW_GROUPS, ITEM, GROUP_FILE_OFFSET)]
    entries = np.concatenate([tree.select(path, (ThriftKind.I64,)) for path in paths])
    delta = np.zeros(footer.row_group_count, np.int64)
    delta[list(deltas)] = list(deltas.values())
    delta = delta[np.searchsorted(tree.select((ROW_GROUPS, ITEM)), entries, side="right") - 1]
    is_moving = (tree.number[entries] > 0) & (delta != 0)
    entries, delta = entries[is_moving], delta[is_moving]
    before = tree.number[entries]
    after = before + delta  # below 0 when there is no such 64-bit number
    if (after <= 0).any():
        least = int(before.min())
        raise InvalidRequest("a position would leave the file", found=int(delta[0]), expected=f"above {-least}")
    return {entry: write_integer(at) for entry, at in zip(entries.tolist(), after.tolist(), strict=True)}

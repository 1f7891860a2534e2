"""Splices footers: picks, reorders, moves and joins row groups, and copies everything else byte for byte.

A footer names its data by position in the file. When column chunks are copied to another place, all positions move by
the same distance; `SHIFTING` lists the fields that hold one. Writers differ on whether 0 is a position or means absent:
no position of data is 0, since every file begins with its magic, so 0 stays 0, and so does anything below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from underlay.errors import InvalidRequest, SchemaMismatch, Unsupported
from underlay.parquet.footer.chunks import CHUNKS, META, SHIFTING
from underlay.parquet.footer.footer import ROW_GROUPS, Footer, KeyValue
from underlay.parquet.thrift.encode import I16, I32, I64, List, Raw, Struct, ThriftBinary, Value, encode, list_header
from underlay.parquet.thrift.tree import ITEM, ThriftKind
from underlay.parquet.thrift.wire import write_integer
from underlay.values.ranges import ByteRange

NUM_ROWS = 3
KEY_VALUES = 5
GROUP_FILE_OFFSET = 5
GROUP_ORDINAL = 7
MAX_ORDINAL = 2**15 - 1
BLOOM_OFFSET = 14
BLOOM_LENGTH = 15


class SplicePart(NamedTuple):
    """Row groups of one footer, in the order wanted, and how far their data moves."""

    footer: Footer
    indices: Sequence[int]
    delta: int


def shift_offsets(footer: Footer, delta: int) -> bytes:
    """The footer of the same file with all data `delta` bytes further on."""
    _check_plain(footer, "footer")
    entries = footer.tree.select((ROW_GROUPS, ITEM)).tolist()
    return footer.tree.write(_moved(footer, delta, entries, set(entries)))


def take_row_groups(footer: Footer, indices: Sequence[int]) -> bytes:
    """The footer with only these row groups, in this order; an index may occur more than once."""
    return splice([SplicePart(footer, indices, 0)])


def splice(parts: Iterable[SplicePart]) -> bytes:
    """One footer with the row groups of several, whose schemas must be equal byte for byte.

    Everything except the row groups and the number of rows comes from the first. A group's ordinal, if it has one,
    becomes its new position. Footers of files with encrypted columns are refused, here and by the other functions,
    because they are signed.
    """
    wanted = list(parts)
    if not wanted:
        raise InvalidRequest("there is no footer to splice", expected="at least 1", found=0)
    first = wanted[0].footer
    for number, part in enumerate(wanted):
        _check_part(first, part, number)
    groups: list[bytes] = []
    for part in wanted:
        groups += _row_groups(part, len(groups))
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


def _row_groups(part: SplicePart, ordinal: int) -> list[bytes]:
    """The bytes of the row groups that a part asks for, moved and numbered from `ordinal` on."""
    tree = part.footer.tree
    entries = tree.select((ROW_GROUPS, ITEM)).tolist()
    ordinals = dict(_owners(entries, tree.select((ROW_GROUPS, ITEM, GROUP_ORDINAL), (ThriftKind.I16,)).tolist()))
    wanted = {entries[index] for index in part.indices}
    moved = _moved(part.footer, part.delta, entries, wanted)
    inside: dict[int, dict[int, bytes]] = {entry: {} for entry in entries}
    for owner, entry in _owners(entries, sorted(moved)):
        inside[owner][entry] = moved[entry]
    groups = []
    for place, index in enumerate(part.indices, start=ordinal):
        owner = entries[index]
        replaced = inside[owner]
        if owner in ordinals:
            replaced = {**replaced, ordinals[owner]: _ordinal(place)}
        groups.append(tree.write(replaced, entry=owner))
    return groups


def _owners(owners: list[int], entries: list[int]) -> list[tuple[int, int]]:
    """Each entry with the last of `owners` that is not after it."""
    ranks = np.searchsorted(owners, entries, side="right") - 1
    return [(owners[rank], entry) for rank, entry in zip(ranks.tolist(), entries, strict=True)]


def _ordinal(place: int) -> bytes:
    if place > MAX_ORDINAL:
        raise Unsupported("there are too many row groups to number", expected=f"at most {MAX_ORDINAL + 1}")
    return encode(I16(place))


def _moved(footer: Footer, delta: int, groups: list[int], wanted: set[int]) -> dict[int, bytes]:
    """New bytes for every position that changes in the wanted row groups."""
    if not delta:
        return {}
    tree = footer.tree
    paths = [CHUNKS + path for path in SHIFTING] + [(ROW_GROUPS, ITEM, GROUP_FILE_OFFSET)]
    entries = np.concatenate([tree.select(path, (ThriftKind.I64,)) for path in paths])
    entries = entries[tree.number[entries] > 0]
    if len(wanted) < len(groups):
        owners = np.array(groups)[np.searchsorted(groups, entries, side="right") - 1]
        entries = entries[np.isin(owners, list(wanted))]
    positions = tree.number[entries]
    if positions.size and not 0 < int(positions.min()) + delta <= int(positions.max()) + delta < 2**63:
        raise InvalidRequest("a position would leave the file", found=delta, expected=f"above {-int(positions.min())}")
    return {entry: write_integer(at + delta) for entry, at in zip(entries.tolist(), positions.tolist(), strict=True)}

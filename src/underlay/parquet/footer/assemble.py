"""Takes a footer apart into row groups as bytes and all else, and puts row groups together to a footer again.

A file that grows by row groups has a new footer each time. Most of its row groups are as they were: their bytes are
kept, so that a footer costs what copying it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from underlay.errors import Malformed, Unsupported
from underlay.parquet.footer.footer import ROW_GROUPS, Footer
from underlay.parquet.footer.splice import GROUP_ORDINAL, MAX_ORDINAL, NUM_ROWS, moved_positions
from underlay.parquet.thrift.encode import I64, encode, list_header
from underlay.parquet.thrift.tree import ITEM, ThriftKind
from underlay.parquet.thrift.wire import write_integer


class GroupBytes(NamedTuple):
    """A row group of a footer, around its ordinal if it has one."""

    head: bytes
    tail: bytes | None

    def numbered(self, ordinal: int) -> bytes:
        """The row group at this place of a footer."""
        return self.head if self.tail is None else b"".join((self.head, write_integer(ordinal), self.tail))


class FooterForm(NamedTuple):
    """A footer without its row groups and without its number of rows. Footers of one schema and writer share it."""

    beginning: bytes
    middle: bytes
    ending: bytes

    def footer(self, groups: Sequence[GroupBytes], row_count: int) -> bytes:
        """The footer with these row groups, in this order."""
        if len(groups) > MAX_ORDINAL:
            raise Unsupported("there are too many row groups to number", expected=f"at most {MAX_ORDINAL}")
        pieces: Iterable[bytes] = (group.numbered(number) for number, group in enumerate(groups))
        return b"".join(
            (
                self.beginning,
                encode(I64(row_count)),
                self.middle,
                list_header(ThriftKind.STRUCT, len(groups)),
                *pieces,
                self.ending,
            )
        )


def take_apart(footer: Footer, delta: int = 0) -> tuple[FooterForm, list[GroupBytes]]:
    """The form of a footer and its row groups, with all data `delta` bytes further on. Raises Malformed."""
    tree = footer.tree
    fields = tree.fields(0)
    if NUM_ROWS not in fields or fields.get(ROW_GROUPS) != fields[NUM_ROWS] + 1:
        raise Malformed("the footer does not have its number of rows and its row groups in a row")
    rows, groups = fields[NUM_ROWS], fields[ROW_GROUPS]
    form = FooterForm(
        beginning=footer.data[: int(tree.begin[rows])],
        middle=footer.data[int(tree.end[rows]) : int(tree.begin[groups])],
        ending=footer.data[int(tree.end[groups]) :],
    )
    entries = tree.select((ROW_GROUPS, ITEM)).tolist()
    ordinals = tree.select((ROW_GROUPS, ITEM, GROUP_ORDINAL), (ThriftKind.I16,)).tolist()
    moved = moved_positions(footer, dict.fromkeys(range(len(entries)), delta))
    found = []
    for entry, following in pairwise([*entries, len(tree)]):
        mine = {one: data for one, data in moved.items() if entry < one < following} if moved else {}
        data = tree.write(mine, entry=entry)
        ordinal = next((one for one in ordinals if entry < one < following), None)
        if ordinal is None:
            found.append(GroupBytes(data, None))
            continue
        if any(one > ordinal for one in mine):
            raise Malformed("a row group has positions behind its ordinal")
        end = len(data) - int(tree.end[entry] - tree.end[ordinal])
        found.append(GroupBytes(data[: end - int(tree.end[ordinal] - tree.begin[ordinal])], data[end:]))
    return form, found

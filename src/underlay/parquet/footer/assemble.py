"""Takes a footer apart into row groups as bytes and all else, and puts row groups together to a footer again.

A file that grows by row groups has a new footer each time. Most of its row groups are as they were: their bytes are
kept, so that a footer costs what copying it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from underlay.errors import Malformed, Unsupported
from underlay.parquet.footer.footer import ROW_GROUPS
from underlay.parquet.footer.splice import GROUP_ORDINAL, MAX_ORDINAL, NUM_ROWS
from underlay.parquet.thrift.encode import I64, encode, list_header
from underlay.parquet.thrift.tree import ITEM, ThriftKind, parse
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


def take_apart(footer: bytes) -> tuple[FooterForm, list[GroupBytes]]:
    """The form of a footer and its row groups. Raises Malformed."""
    tree = parse(footer)
    fields = tree.fields(0)
    if NUM_ROWS not in fields or fields.get(ROW_GROUPS) != fields[NUM_ROWS] + 1:
        raise Malformed("the footer does not have its number of rows and its row groups in a row")
    rows, groups = fields[NUM_ROWS], fields[ROW_GROUPS]
    form = FooterForm(
        beginning=footer[: int(tree.begin[rows])],
        middle=footer[int(tree.end[rows]) : int(tree.begin[groups])],
        ending=footer[int(tree.end[groups]) :],
    )
    entries = tree.select((ROW_GROUPS, ITEM))
    ordinals = tree.select((ROW_GROUPS, ITEM, GROUP_ORDINAL), (ThriftKind.I16,)).tolist()
    found = []
    for entry in entries.tolist():
        begin, end = int(tree.begin[entry]), int(tree.end[entry])
        ordinal = next((one for one in ordinals if begin <= int(tree.begin[one]) < end), None)
        if ordinal is None:
            found.append(GroupBytes(footer[begin:end], None))
        else:
            found.append(GroupBytes(footer[begin : int(tree.begin[ordinal])], footer[int(tree.end[ordinal]) : end]))
    return form, found

"""Footers that this process has written: all numbers of all chunks are one step of numpy once their form is known.

The form of a Thrift tree: its tape without the positions. Trees of one form have the same entries at every place.

A writer's footers hardly ever differ in form. What the form decides is taken from the first of them, the lead; of the
others only positions and numbers are read. Numbers are not checked to fit their kinds: it is for input that is ours.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from underlay.parquet.footer.chunks import CHUNKS, META, Chunks, Statistics, read_chunks
from underlay.parquet.footer.footer import ROW_GROUPS, Footer, RowGroups
from underlay.parquet.footer.schema import ELEMENTS, Schema, read_schema
from underlay.parquet.records.records import Spans, StructRecords
from underlay.parquet.thrift.places import Places
from underlay.parquet.thrift.scanner import STOP_ENTRY, Scanner
from underlay.parquet.thrift.tape import Octets
from underlay.parquet.thrift.tree import ITEM, Entries, ThriftKind, ThriftTree
from underlay.parquet.thrift.wire import CONTAINERS, decode_varints, unzigzag_all

Words = npt.NDArray[np.uint32]
"""A tape as pairs of a position and a place."""

_INTEGERS = (ThriftKind.I16, ThriftKind.I32, ThriftKind.I64)
_KNOWN = (*_INTEGERS, ThriftKind.TRUE, ThriftKind.FALSE, ThriftKind.STRUCT, ThriftKind.LIST, ThriftKind.BINARY)
_LONG = 15
"""In a list's first byte: the count follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What trees like `lead` share. `entries` are the words of the tape that are values; `stops` those that end the
    `containers`. The other arrays are the entries of one kind; of lists only those of plain values."""

    lead: ThriftTree
    entries: Entries
    containers: Entries
    stops: Entries
    integers: Entries
    binaries: Entries
    lists: Entries


class FormedTree(ThriftTree):
    """A tree of a known form."""

    def __init__(self, data: bytes, scanner: Scanner, words: Words, form: Form) -> None:
        lead = form.lead
        self.data = data
        self.places = scanner.places
        self.octets: Octets = np.frombuffer(data, np.uint8)
        self.place, self.next = lead.place, lead.next
        self.begin = words[form.entries, 0]
        self.end = self.begin.copy()
        self.end[form.containers] = words[form.stops, 0]
        self.number = lead.number.copy()
        ends: Words = np.frombuffer(scanner.ends, np.uint32)
        begin = self.begin[form.integers]
        self.number[form.integers] = unzigzag_all(decode_varints(self.octets, begin))
        self.end[form.integers] = ends[begin]
        begin = self.begin[form.binaries]
        lengths = decode_varints(self.octets, begin)
        self.number[form.binaries] = lengths.view(np.int64)
        self.end[form.binaries] = ends[begin] + lengths.astype(np.uint32)
        self.number[form.lists] = self.octets[self.begin[form.lists]] >> 4


def words_of(scanner: Scanner) -> Words:
    """The tape of a scanner that has run and still has it."""
    words: Words = np.frombuffer(scanner.tape, np.uint32).reshape(-1, 2)
    return words


def form_of(lead: ThriftTree, words: Words) -> Form | None:
    """The form of a tree with this tape; None when it holds values of kinds that footers do not have."""
    kinds = np.array([place.kind for place in lead.places.table], np.uint8)[lead.place]
    if not np.isin(kinds, _KNOWN).all():
        return None
    is_stop = words[:, 1] == STOP_ENTRY >> 32
    entries = np.flatnonzero(~is_stop)
    is_container = iter(np.isin(kinds, list(CONTAINERS)).tolist())
    inside: list[int] = []
    closed: dict[int, int] = {}
    entry = 0
    for word, ends_one in enumerate(is_stop.tolist()):
        if ends_one:
            closed[inside.pop()] = word
            continue
        if next(is_container):
            inside.append(entry)
        entry += 1
    is_empty = lead.next == np.arange(1, kinds.size + 1)
    return Form(
        lead=lead,
        entries=entries,
        containers=np.array(list(closed), np.int64),
        stops=np.array(list(closed.values()), np.int64),
        integers=np.flatnonzero(np.isin(kinds, _INTEGERS)),
        binaries=np.flatnonzero(kinds == ThriftKind.BINARY),
        lists=np.flatnonzero((kinds == ThriftKind.LIST) & is_empty),
    )


def read_formed(data: bytes, scanner: Scanner, words: Words, form: Form) -> FormedTree | None:
    """The tree of input with this tape; None when a list of plain values in it is too long to be read so."""
    tree = FormedTree(data, scanner, words, form)
    return None if (tree.number[form.lists] == _LONG).any() else tree


MAX_FORMS = 64
"""How many forms a thread remembers before it begins anew."""

MAX_FORM_WORDS = 1 << 14
"""The tape of a larger footer has a large file before it, whose writing takes far longer."""

ENCODINGS = (META, 2)
_ROW_NUMBERS = ((3, ThriftKind.I64), (2, ThriftKind.I64), (5, ThriftKind.I64), (7, ThriftKind.I16))


def parse_own(data: bytes) -> Footer:
    """A footer that this process has written. It says what `Footer.parse` of the same bytes says."""
    scanner = Scanner(data, _LEARNT.places)
    scanner.run()
    words = words_of(scanner)
    if len(words) > MAX_FORM_WORDS:
        return Footer(ThriftTree(data, scanner))
    key = words[:, 1].tobytes()
    known = _LEARNT.forms.get(key)
    tree = None if known is None else read_formed(data, scanner, words, known.form)
    if known is not None and tree is not None:
        return _LikeLead(tree, known)
    footer = Footer(ThriftTree(data, scanner))
    if key in _LEARNT.forms:  # a form that came once may never come again
        form = form_of(footer.tree, words)
        _LEARNT.forms[key] = None if form is None else _Lead(footer, form)
    else:
        _LEARNT.meet(key)
    return footer


class _Lead:
    """The first footer of a form, and where in the tree lies what differs in others."""

    def __init__(self, footer: Footer, form: Form) -> None:
        self.footer = footer
        self.form = form
        tree = footer.tree
        groups = StructRecords(tree, (ROW_GROUPS, ITEM))
        self.row_numbers = np.stack([groups.nodes(field, kind=kind) for field, kind in _ROW_NUMBERS])
        self.sorting = tree.select((ROW_GROUPS, ITEM, 4, ITEM, 1))
        self.encodings = tree.select((*CHUNKS, *ENCODINGS))
        self.encoded = self.encodings_in(tree)
        traced = read_chunks(_Traced(tree), footer.row_group_count, footer.column_count)
        names = [*_traced(traced), *_traced(traced.statistics)]
        self.rank = {name: rank for rank, (name, _) in enumerate(names)}
        self.index = np.stack([index for _, index in names])
        self.spans = {name for name in self.rank if isinstance(getattr(traced.statistics, name, None), Spans)}
        for part in (footer.chunks, footer.chunks.statistics, footer.row_groups):
            for field in fields(part):
                value = getattr(part, field.name)
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False  # every footer of the form has it

    def encodings_in(self, tree: ThriftTree) -> bytes:
        """The lists of encodings, as they are stored."""
        spans = zip(tree.begin[self.encodings].tolist(), tree.end[self.encodings].tolist(), strict=True)
        return b"".join(tree.data[begin:end] for begin, end in spans)


class _Traced(ThriftTree):
    """A tree that has for every number where it comes from: 1 more than the entry."""

    def __init__(self, tree: ThriftTree) -> None:
        self.data, self.places, self.octets = tree.data, tree.places, tree.octets
        self.place, self.begin, self.end, self.next = tree.place, tree.begin, tree.end, tree.next
        self.number = np.arange(1, len(tree) + 1)

    def numbers_in(self, entries: Entries) -> tuple[Entries, Entries]:
        """No list's numbers: they have no entries."""
        return entries[:0], entries[:0]


def _traced(part: Chunks | Statistics) -> list[tuple[str, Entries]]:
    """The fields that are numbers or spans, with the entries they come from; -1 stands for 0 and -2 for -1."""
    found = []
    for field in fields(part):
        value = getattr(part, field.name)
        numbers = value.length if isinstance(value, Spans) else value
        if isinstance(numbers, np.ndarray) and numbers.dtype == np.int64:
            found.append((field.name, numbers - 1))
    return found


class _LikeLead(Footer):
    """A footer of a known form."""

    def __init__(self, tree: FormedTree, known: _Lead) -> None:
        lead = known.footer
        self._known = known
        self.tree = tree
        self.data = tree.data
        self._fields = lead._fields
        self.schema: Schema = self._schema(lead.schema)
        self.version = self._integer(1, ThriftKind.I32)
        self.num_rows = self._integer(3, ThriftKind.I64)
        self.created_by = self._text(6)
        self.key_values = self._key_values() if lead.key_values else ()
        self.column_orders = lead.column_orders
        self.is_encrypted = lead.is_encrypted
        self.row_groups = self._like_lead(lead.row_groups)

    def _schema(self, schema: Schema) -> Schema:
        return schema if self.tree.raw(self._fields[ELEMENTS]) == schema.raw else read_schema(self.tree)

    def _like_lead(self, groups: RowGroups) -> RowGroups:
        known, number = self._known, self.tree.number
        if number[known.sorting].tolist() != known.footer.tree.number[known.sorting].tolist():
            return self._row_groups()
        num_rows, total_byte_size, file_offset, ordinal = np.append(number, 0)[known.row_numbers]
        return replace(
            groups, num_rows=num_rows, total_byte_size=total_byte_size, file_offset=file_offset, ordinal=ordinal
        )

    @cached_property
    def chunks(self) -> Chunks:
        """The column chunks. There is one for each column of every row group, as in the lead."""
        known, tree, lead = self._known, self.tree, self._known.footer.chunks
        numbers = np.concatenate((tree.number, (-1, 0)))[known.index]
        begins = np.concatenate((tree.end - tree.number, (-1, 0)))[known.index]

        def read(part: Chunks | Statistics) -> dict[str, Any]:  # Any: numbers or spans, by field
            return {
                field.name: Spans(begins[rank], numbers[rank]) if field.name in known.spans else numbers[rank]
                for field in fields(part)
                if (rank := known.rank.get(field.name)) is not None
            }

        is_alike = known.encodings_in(tree) == known.encoded
        shape = lead.encodings.shape
        encodings = lead.encodings if is_alike else StructRecords(tree, CHUNKS).masks(*ENCODINGS).reshape(shape)
        statistics = replace(lead.statistics, **read(lead.statistics))
        return replace(lead, **read(lead), encodings=encodings, statistics=statistics)


class _Learnt(threading.local):
    """What each thread knows of our own footers, which are few and always the same."""

    def __init__(self) -> None:
        self.places = Places()
        self.forms: dict[bytes, _Lead | None] = {}

    def meet(self, key: bytes) -> None:
        """A form for the first time."""
        if len(self.forms) >= MAX_FORMS:
            self.forms.clear()
        self.forms[key] = None


_LEARNT = _Learnt()

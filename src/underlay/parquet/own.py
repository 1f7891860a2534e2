"""Footers that this process has written: all numbers of all chunks are one step of numpy once their form is known."""

from __future__ import annotations

import threading
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from underlay.parquet.chunks import CHUNKS, META, Chunks, Statistics, read_chunks
from underlay.parquet.footer import ROW_GROUPS, Footer, RowGroups
from underlay.parquet.form import Form, FormedTree, form_of, read_formed, words_of
from underlay.parquet.places import Places
from underlay.parquet.records import Records, Spans
from underlay.parquet.scan import Scanner
from underlay.parquet.schema import ELEMENTS, Schema, read_schema
from underlay.parquet.thrift import ITEM, Entries, Kind, Tree

MAX_FORMS = 64
"""How many forms a thread remembers before it begins anew."""

MAX_FORM_WORDS = 1 << 14
"""The tape of a larger footer has a large file before it, whose writing takes far longer."""

ENCODINGS = (META, 2)
_ROW_NUMBERS = ((3, Kind.I64), (2, Kind.I64), (5, Kind.I64), (7, Kind.I16))


def parse_own(data: bytes) -> Footer:
    """A footer that this process has written. It says what `Footer.parse` of the same bytes says."""
    scanner = Scanner(data, _LEARNT.places)
    scanner.run()
    words = words_of(scanner)
    if len(words) > MAX_FORM_WORDS:
        return Footer(Tree(data, scanner))
    key = words[:, 1].tobytes()
    known = _LEARNT.forms.get(key)
    tree = None if known is None else read_formed(data, scanner, words, known.form)
    if known is not None and tree is not None:
        return _LikeLead(tree, known)
    footer = Footer(Tree(data, scanner))
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
        groups = Records(tree, (ROW_GROUPS, ITEM))
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

    def encodings_in(self, tree: Tree) -> bytes:
        """The lists of encodings, as they are stored."""
        spans = zip(tree.begin[self.encodings].tolist(), tree.end[self.encodings].tolist(), strict=True)
        return b"".join(tree.data[begin:end] for begin, end in spans)


class _Traced(Tree):
    """A tree that has for every number where it comes from: 1 more than the entry."""

    def __init__(self, tree: Tree) -> None:
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
        self.version = self._integer(1, Kind.I32)
        self.num_rows = self._integer(3, Kind.I64)
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
        encodings = lead.encodings if is_alike else Records(tree, CHUNKS).masks(*ENCODINGS).reshape(shape)
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

"""Salvages the good rows of a block of CSV that does not fit as a whole, and says why each other record is not a row.

Records that are surely wrong are found first: bytes that are not UTF-8, a wrong number of fields, texts that do not
convert, column by column. The rest is read like any block; if that fails too, it is halved, down to single records.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from underlay.errors import SchemaMismatch
from underlay.ingest.csv.columns import CsvColumns
from underlay.ingest.csv.records import CsvRecords, content_ends
from underlay.ingest.rows.misfits import UNFIT, find_bad
from underlay.ingest.rows.reading import Dialect, shown, shown_encoding
from underlay.ingest.rows.text_values import converter, is_csv_type
from underlay.ingest.rows.written import format_of, has_own_numbers, plain_numbers, written_converter
from underlay.schema.arrow_aliases import AnyArray

Integers = NDArray[np.int64]

_ARROW_ERROR = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?(.*)", re.DOTALL)
_INFINITE = r"(?i)^\s*[+-]?inf(inity)?\s*$"
_NUMBER = r"[.]?[0-9][0-9.eE+-]*[ \t]*$"
_BOOLEAN = r"(?i)^(0|1|true|false)$"
_INTEGER = r"^[ \t]*-?([0-9]+|0[xX][0-9a-fA-F]+)[ \t]*$"
_FLOAT = rf"^[ \t]*[+-]?((?i:nan|inf(inity)?[ \t]*$)|{_NUMBER})"
_DECIMAL = rf"^[ \t]*[+-]?{_NUMBER}"
_DATED = r"^[ \t]*[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9+:.TZ \t-]*$"


def bad_texts(texts: AnyArray, type_: pa.DataType, dialect: Dialect | None = None) -> Integers:
    """The positions of texts that are surely not values of a type. Nulls count as values."""
    written = dialect or Dialect()
    if format_of(type_, written) is not None:
        convert = written_converter(type_, written)
        return find_bad(len(texts), lambda part: convert(texts[part]))
    if has_own_numbers(type_, written):
        texts = plain_numbers(texts, written)
    convert = converter(type_)
    try:
        return _beyond(texts, convert(texts))
    except UNFIT:
        alike = _is_alike(texts, type_)
    # Most bad texts do not even look like a value; the others are found by bisection.
    values = _where(alike, texts)
    try:
        return np.union1d(np.flatnonzero(~alike), _beyond(values, convert(values)))
    except UNFIT:
        convert = _trimming(type_)
    alike[find_bad(len(values), lambda part: convert(values[part]))] = False
    values = _where(alike, texts)
    return np.union1d(np.flatnonzero(~alike), _beyond(values, convert(values)))


def _where(mask: NDArray[np.bool_], texts: AnyArray) -> AnyArray:
    """The texts where the mask is true, null elsewhere."""
    return pc.if_else(pa.array(mask), texts, pa.scalar(None, pa.string()))


def _is_alike(texts: AnyArray, type_: pa.DataType) -> NDArray[np.bool_]:
    """Which texts look like values of the type, or are null: no other text can be a value."""
    shape = _shape(type_)
    return np.ones(len(texts), np.bool_) if shape is None else _matches(texts, shape)


def _matches(texts: AnyArray, pattern: str) -> NDArray[np.bool_]:
    """Which texts match the pattern, or are null."""
    found: AnyArray = pc.match_substring_regex(texts, pattern)
    return np.asarray(found.fill_null(True).to_numpy(zero_copy_only=False), np.bool_)


def _beyond(texts: AnyArray, values: AnyArray) -> Integers:
    """The positions of numbers that became infinite though their text does not say so."""
    if not pa.types.is_floating(values.type):
        return np.empty(0, np.int64)
    is_infinite: AnyArray = pc.is_inf(values)
    infinite = np.flatnonzero(is_infinite.fill_null(False).to_numpy(zero_copy_only=False))
    if not len(infinite):
        return infinite
    return infinite[~_matches(texts.take(pa.array(infinite)), _INFINITE)]


def _shape(type_: pa.DataType) -> str | None:
    """A pattern that matches all texts that are values of the type, and few others; None when any text may be one."""
    types = pa.types
    if types.is_boolean(type_):
        return _BOOLEAN
    if types.is_integer(type_):
        return _INTEGER
    if types.is_floating(type_):
        return _FLOAT
    if types.is_decimal(type_):
        return _DECIMAL
    return _DATED if types.is_date(type_) or types.is_timestamp(type_) else None


def _trimming(type_: pa.DataType) -> Callable[[AnyArray], AnyArray]:
    """Converts like Arrow's CSV reader, which trims numbers and dates, or more generously."""
    convert = converter(type_)
    if not is_csv_type(type_) or pa.types.is_time(type_) or pa.types.is_timestamp(type_) or pa.types.is_boolean(type_):
        return convert
    return lambda texts: convert(pc.ascii_trim(texts, characters=" \t"))


def bytes_of(data: bytes, records: CsvRecords, wanted: Integers | None = None) -> bytes:
    """The bytes of these records, or of all, joined in runs of neighbours, without what lies between them."""
    begins, ends = records.begins, records.ends
    if wanted is not None:
        begins, ends = begins[wanted], ends[wanted]
    if not len(begins):
        return b""
    is_start = np.append(True, begins[1:] != ends[:-1])
    is_stop = np.append(is_start[1:], True)
    pairs = zip(begins[is_start].tolist(), ends[is_stop].tolist(), strict=True)
    return b"".join(data[begin:end] for begin, end in pairs)


def too_long(data: bytes, records: CsvRecords, most: int) -> Integers:
    """Which records are longer than allowed."""
    return np.flatnonzero(content_ends(data, records.begins, records.ends) - records.begins > most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """The columns that the table takes, for the records `kept`; and why the others are not rows, by position."""

    columns: pa.Table
    kept: Integers
    reasons: dict[int, str]


def mend(columns: CsvColumns, data: bytes, records: CsvRecords) -> Mended:
    """Split the records of a block into rows, and reasons for rejecting the others."""
    work = _Work(columns=columns, data=data, records=records)
    left = np.arange(len(records.begins))
    left = work.without(left, work.too_long())
    left = work.without(left, work.not_text())
    left = work.without(left, work.unfit(left))
    tables: list[pa.Table] = []
    kept = work.read(left, tables)
    empty = pa.schema(list(columns.taken())).empty_table()
    return Mended(columns=pa.concat_tables([empty, *tables]), kept=kept, reasons=work.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    columns: CsvColumns
    data: bytes
    records: CsvRecords
    reasons: dict[int, str] = field(default_factory=dict)

    def without(self, left: Integers, reasons: dict[int, str]) -> Integers:
        self.reasons.update(reasons)
        return left[~np.isin(left, list(reasons))] if reasons else left

    def too_long(self) -> dict[int, str]:
        most = self.columns.reading.record_bytes
        found = too_long(self.data, self.records, most).tolist() if len(self.data) > most else []
        return dict.fromkeys(found, f"the record is longer than {most} bytes")

    def not_text(self) -> dict[int, str]:
        """Records that are not UTF-8."""
        found: dict[int, str] = {}
        at, view = 0, memoryview(self.data)
        while not self.data.isascii() and at < len(self.data):
            try:
                str(view[at:], "utf-8")
                break
            except UnicodeDecodeError as error:
                place = at + error.start
                record = int(np.searchsorted(self.records.ends, place, side="right"))
                if record == len(self.records.ends):  # the bytes are in a comment
                    break
                at = int(self.records.begins[record])
                if place >= at:
                    encoding = shown_encoding(self.columns.reading.dialect)
                    found[record] = f"byte {place - at} is not {encoding}"
                    at = int(self.records.ends[record])
        return found

    def unfit(self, left: Integers) -> dict[int, str]:
        """Records with a wrong number of fields, or with texts that are not values of their column."""
        reasons: dict[int, str] = {}

        def skip(row: pyarrow.csv.InvalidRow) -> Literal["skip"]:
            found = f"expected {row.expected_columns} fields, found {row.actual_columns}"
            reasons[int(left[(row.number or 1) - 1])] = found
            return "skip"

        if not len(left):
            return reasons
        texts = self.columns.texts(self.bytes_of(left), skip)
        whole = left[~np.isin(left, list(reasons))]
        for name, type_ in self.columns.taken():
            if pa.types.is_string(type_):
                continue
            column: AnyArray = texts.column(name).combine_chunks()
            for row in bad_texts(column, type_, self.columns.reading.dialect).tolist():
                value = shown(column[row].as_py())
                reasons.setdefault(
                    int(whole[row]), f"column {name}: {value} is not a valid {self.columns.type_of(name)}"
                )
        return reasons

    def read(self, left: Integers, tables: list[pa.Table]) -> Integers:
        """Read these records into tables, and return the records that are rows."""
        if not len(left):
            return left
        try:
            tables.append(self.columns.convert(self.bytes_of(left), may_be_infinite=True))
        except UNFIT as error:
            if len(left) > 1:
                middle = len(left) // 2
                kept = [self.read(half, tables) for half in (left[:middle], left[middle:])]
                return np.concatenate(kept)
            self.reasons[int(left[0])] = self.reason(error)
            return left[:0]
        return left

    def bytes_of(self, left: Integers) -> bytes:
        return bytes_of(self.data, self.records, left)

    def reason(self, error: Exception) -> str:
        found = _ARROW_ERROR.fullmatch(str(error))
        if found is None or isinstance(error, SchemaMismatch):
            return str(error)
        return f"column {self.columns.names[int(found[1])]}: {found[2].partition('. If these')[0]}"

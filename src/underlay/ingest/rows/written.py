"""Converts texts of a CSV dialect with its own format of numbers, dates and times; as strictly as `text_values`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from underlay.ingest.rows.reading import Dialect
from underlay.ingest.rows.text_values import converter, is_csv_type
from underlay.schema.arrow_aliases import AnyArray, AnyType

_SPACES = " \t"
_NO_NUMBER = "not a number"


def reader_type(type_: pa.DataType, dialect: Dialect) -> pa.DataType:
    """The type as which Arrow's reader reads a column: its own, a wider one, or text."""
    if format_of(type_, dialect) is not None or has_own_numbers(type_, dialect):
        return pa.string()
    if pa.types.is_float16(type_):
        return pa.float32()
    return type_ if is_csv_type(type_) else pa.string()


def has_own_numbers(type_: pa.DataType, dialect: Dialect) -> bool:
    """Whether the dialect writes numbers of this type in another way than Arrow reads."""
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    return is_number and (dialect.decimal != "." or dialect.thousands is not None)


def format_of(type_: pa.DataType, dialect: Dialect) -> str | None:
    """The dialect's format for a column's dates or times, if it has one."""
    if pa.types.is_date(type_):
        return dialect.date_format
    return dialect.timestamp_format if pa.types.is_timestamp(type_) else None


def written_converter(type_: pa.DataType, dialect: Dialect) -> Callable[[AnyArray], AnyArray]:
    """A function that converts a column of texts. It raises ArrowInvalid or ValueError when a text is not a value."""
    format_ = format_of(type_, dialect)
    if format_ is not None:
        return lambda texts: _dated(texts, type_, format_)
    convert = _float16 if pa.types.is_float16(type_) else converter(type_)
    if has_own_numbers(type_, dialect):
        return lambda texts: convert(plain_numbers(texts, dialect))
    return convert


def plain_numbers(texts: AnyArray, dialect: Dialect) -> AnyArray:
    """The dialect's numbers with a decimal point and without thousands separators. A text that is not a number in the
    dialect does not become one.
    """
    trimmed: AnyArray = pc.ascii_trim(texts, characters=_SPACES)
    marks = f"{dialect.thousands or ''}{dialect.decimal}."
    has_marks: AnyArray = pc.match_substring_regex(trimmed, f"[{''.join(map(_escape, marks))}]")
    is_number: AnyArray = pc.match_substring_regex(trimmed, _pattern(dialect))
    plain: AnyArray = trimmed
    if dialect.thousands is not None:
        plain = pc.replace_substring(plain, dialect.thousands, "")
    plain = pc.replace_substring(plain, dialect.decimal, ".")
    chosen: AnyArray = pc.if_else(is_number, plain, pa.scalar(_NO_NUMBER))
    return pc.if_else(has_marks, chosen, trimmed)


def _pattern(dialect: Dialect) -> str:
    whole = "[0-9]*"
    if dialect.thousands is not None:
        whole = f"(?:[1-9][0-9]{{0,2}}(?:{_escape(dialect.thousands)}[0-9]{{3}})+|[0-9]*)"
    return f"^[+-]?{whole}(?:{_escape(dialect.decimal)}[0-9]*)?(?:[eE][+-]?[0-9]+)?$"


def _escape(mark: str) -> str:
    return re.escape(mark) if mark.isascii() else mark


def _float16(texts: AnyArray) -> AnyArray:
    return texts.cast(pa.float32()).cast(pa.float16())


def _dated(texts: AnyArray, type_: AnyType, format_: str) -> AnyArray:
    """Parses each distinct text once."""
    column: AnyArray = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    different: AnyArray = column.dictionary_encode()
    # With or without a zone: the column decides whether there must be one.
    moments = [datetime.strptime(str(text).strip(_SPACES), format_) for text in different.dictionary.to_pylist()]
    if pa.types.is_date(type_):
        values: AnyArray = pa.array([_day(one) for one in moments], pa.date32()).cast(type_)
    else:
        is_zoned = type_.tz is not None
        if any((one.tzinfo is not None) != is_zoned for one in moments):
            raise ValueError("a time with a zone where the column has none, or the other way round")
        values = pa.array(moments, pa.timestamp("us", "UTC" if is_zoned else None)).cast(type_)
    return values.take(different.indices)


def _day(moment: datetime) -> date:
    if moment.time() != datetime.min.time():
        raise ValueError("a time of day in a column of dates")
    return moment.date()

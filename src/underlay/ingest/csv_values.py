"""Which texts of a CSV column are no values, as Arrow's reader of CSV sees it, without asking it row by row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.ingest.bad_values import UNFIT, find_bad
from underlay.ingest.text_values import converter, is_csv_type
from underlay.schema.arrays import AnyArray

Integers = NDArray[np.int64]

_INFINITE = r"(?i)^\s*[+-]?inf(inity)?\s*$"
_TAGGED_NAN = r"(?i)^\s*[+-]?nan\("
_SPACE, _DIGITS = b" \t", b"0123456789"


def _marked(octets: bytes) -> NDArray[np.bool_]:
    marked = np.zeros(256, np.bool_)
    marked[list(octets)] = True
    return marked


_BOOLEAN = _marked(b"01falseFALSEtrueTRUE")
_INTEGER = _marked(_SPACE + _DIGITS + b"-xXabcdefABCDEF")
_FLOAT = _marked(_SPACE + _DIGITS + b"+-.eEinfatyINFATY")
_DECIMAL = _marked(_SPACE + _DIGITS + b"+-.eE")
_DATED = _marked(_SPACE + _DIGITS + b"+-:.TZ")


def bad_texts(texts: AnyArray, type_: pa.DataType) -> Integers:
    """The places of texts that are surely no values of a type. Nulls are values."""
    convert = converter(type_)
    try:
        return _beyond(texts, convert(texts))
    except UNFIT:
        alike = _is_alike(texts, type_)
    # Most that is wrong does not even look like a value; the few others are found by halves.
    values = _where(alike, texts)
    try:
        return np.union1d(np.flatnonzero(~alike), _beyond(values, convert(values)))
    except UNFIT:
        convert = _trimming(type_)
    alike[find_bad(len(values), lambda part: convert(values[part]))] = False
    values = _where(alike, texts)
    return np.union1d(np.flatnonzero(~alike), _beyond(values, convert(values)))


def _where(mask: NDArray[np.bool_], texts: AnyArray) -> AnyArray:
    """The texts, null where they are not asked for."""
    return pc.if_else(pa.array(mask), texts, pa.scalar(None, pa.string()))


def _is_alike(texts: AnyArray, type_: pa.DataType) -> NDArray[np.bool_]:
    """Which texts are written with the letters of the type's values."""
    alike = np.ones(len(texts), np.bool_)
    letters = _letters(type_)
    _, ends, data = texts.buffers()
    if letters is None or data is None:
        return alike
    bounds = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    octets = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    strange = np.flatnonzero(~letters[octets]) + bounds[0]
    rows = np.unique(np.searchsorted(bounds, strange, side="right") - 1)
    if letters is _FLOAT:
        rows = rows[~_matches(texts.take(pa.array(rows)), _TAGGED_NAN)]
    alike[rows] = False
    return alike


def _matches(texts: AnyArray, pattern: str) -> NDArray[np.bool_]:
    found: AnyArray = pc.match_substring_regex(texts, pattern)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _beyond(texts: AnyArray, values: AnyArray) -> Integers:
    """The places of numbers that became infinite and do not say so."""
    if not pa.types.is_floating(values.type):
        return np.empty(0, np.int64)
    is_infinite: AnyArray = pc.is_inf(values)
    infinite = np.flatnonzero(is_infinite.fill_null(False).to_numpy(zero_copy_only=False))
    if not len(infinite):
        return infinite
    return infinite[~_matches(texts.take(pa.array(infinite)), _INFINITE)]


def _letters(type_: pa.DataType) -> NDArray[np.bool_] | None:
    """The bytes that texts of the type are made of; None when any may be."""
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
    """As Arrow's reader of CSV converts, or more generous: it trims numbers and dates."""
    convert = converter(type_)
    if not is_csv_type(type_) or pa.types.is_time(type_) or pa.types.is_timestamp(type_) or pa.types.is_boolean(type_):
        return convert
    return lambda texts: convert(pc.ascii_trim(texts, characters=" \t"))

"""Which texts of a CSV column are no values, as Arrow's reader of CSV sees it, without asking it row by row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.ingest.rows.bad_values import UNFIT, find_bad
from underlay.ingest.rows.text_values import converter, is_csv_type
from underlay.schema.arrow_aliases import AnyArray

Integers = NDArray[np.int64]

_INFINITE = r"(?i)^\s*[+-]?inf(inity)?\s*$"
_NUMBER = r"[.]?[0-9][0-9.eE+-]*[ \t]*$"
_BOOLEAN = r"(?i)^(0|1|true|false)$"
_INTEGER = r"^[ \t]*-?([0-9]+|0[xX][0-9a-fA-F]+)[ \t]*$"
_FLOAT = rf"^[ \t]*[+-]?((?i:nan|inf(inity)?[ \t]*$)|{_NUMBER})"
_DECIMAL = rf"^[ \t]*[+-]?{_NUMBER}"
_DATED = r"^[ \t]*[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9+:.TZ \t-]*$"


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
    """Which texts are written as the type's values are, or are null: no other one is a value."""
    shape = _shape(type_)
    return np.ones(len(texts), np.bool_) if shape is None else _matches(texts, shape)


def _matches(texts: AnyArray, pattern: str) -> NDArray[np.bool_]:
    """Which texts have the pattern, or are null."""
    found: AnyArray = pc.match_substring_regex(texts, pattern)
    return np.asarray(found.fill_null(True).to_numpy(zero_copy_only=False), np.bool_)


def _beyond(texts: AnyArray, values: AnyArray) -> Integers:
    """The places of numbers that became infinite and do not say so."""
    if not pa.types.is_floating(values.type):
        return np.empty(0, np.int64)
    is_infinite: AnyArray = pc.is_inf(values)
    infinite = np.flatnonzero(is_infinite.fill_null(False).to_numpy(zero_copy_only=False))
    if not len(infinite):
        return infinite
    return infinite[~_matches(texts.take(pa.array(infinite)), _INFINITE)]


def _shape(type_: pa.DataType) -> str | None:
    """A pattern of all texts that are values of the type, and few others; None when any may be."""
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

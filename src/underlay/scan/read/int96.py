"""Decodes INT96 timestamps exactly in the table's unit or not at all; Arrow has one unit and lets values wrap.

A value is a day and the nanoseconds in it. In milliseconds no value wraps, and the nanoseconds, wrapped or not, are
right modulo 2^64; the two together are the whole value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import UnderlayError, Unsupported
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyChunks
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.types import Field, Scalar

_NS_PER_MS = 1_000_000
_NS_PER_US = 1_000
_US_PER_MS = 1_000
_MAX_MS_IN_US = np.iinfo(np.int64).max // _US_PER_MS - 1


def exact_timestamps(in_ns: AnyChunks, in_ms: AnyChunks, field: Field) -> AnyChunks:
    """The field's column from one INT96 column decoded in both units: its instants, in the field's zone.

    Raises Unsupported when a value does not fit the field's type, or is finer than it.
    """
    ns, ms = _integers(in_ns), _integers(in_ms)
    is_ns = isinstance(field.type, Scalar) and field.type.unit == "ns"
    values = _nanoseconds(ns, ms, field) if is_ns else _microseconds(ns, ms, field)
    is_null = in_ns.is_null().to_numpy() if in_ns.null_count else None
    arrow = to_arrow_type(field.type)
    return pa.chunked_array([pa.array(values, pa.int64(), mask=is_null).cast(arrow)], arrow)


def _integers(column: AnyChunks) -> NDArray[np.int64]:
    """The numbers of a column of timestamps, 0 for nulls."""
    numbers: NDArray[np.int64] = column.cast(pa.int64()).fill_null(0).to_numpy()
    return numbers


def _nanoseconds(ns: NDArray[np.int64], ms: NDArray[np.int64], field: Field) -> NDArray[np.int64]:
    wrapped = ns // _NS_PER_MS != ms
    if wrapped.any():
        hint = "Nanoseconds reach from 1677 to 2262: register the file in a table whose column has microseconds."
        raise _misfit("a timestamp is out of the range of the column's type", ns, ms, wrapped, field, hint)
    return ns


def _microseconds(ns: NDArray[np.int64], ms: NDArray[np.int64], field: Field) -> NDArray[np.int64]:
    wrapped = np.abs(ms) > _MAX_MS_IN_US
    if wrapped.any():
        hint = "Write the file again without it."
        raise _misfit("a timestamp is out of the range of the column's type", ns, ms, wrapped, field, hint)
    rest = _below_ms(ns, ms)
    finer = rest % _NS_PER_US != 0
    if finer.any():
        hint = "Change the column's type to nanoseconds."
        raise _misfit("a timestamp is finer than the column's type", ns, ms, finer, field, hint)
    return ms * _US_PER_MS + rest // _NS_PER_US


def _below_ms(ns: NDArray[np.int64], ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Nanoseconds since the last whole millisecond. Product and difference may wrap; what is left is right."""
    return ns - ms * _NS_PER_MS


def _misfit(
    problem: str, ns: NDArray[np.int64], ms: NDArray[np.int64], where: NDArray[np.bool_], field: Field, hint: str
) -> UnderlayError:
    at = int(np.argmax(where))
    rest = int(_below_ms(ns[at : at + 1], ms[at : at + 1])[0])
    found = f"{np.datetime64(int(ms[at]), 'ms')}{rest:06d}"
    return Unsupported(problem, place=format_column((field.name,)), expected=field.type, found=found, hint=hint)

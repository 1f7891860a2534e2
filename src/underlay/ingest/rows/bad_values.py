"""Which values of a column do not convert, found by halves and not one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import SchemaMismatch

UNFIT = (pa.ArrowInvalid, ValueError, SchemaMismatch, OverflowError)
"""What converting raises for a value that has no form in the type."""


def find_bad(count: int, convert: Callable[[slice], object]) -> NDArray[np.int64]:
    """The places of the values, of `count`, that `convert` refuses, ascending: O(bad · log(count / bad)) calls."""
    bad: list[int] = []
    parts = [(0, count)]
    while parts:
        begin, end = parts.pop()
        if begin == end or _converts(slice(begin, end), convert):
            continue
        if end - begin == 1:
            bad.append(begin)
            continue
        middle = (begin + end) // 2
        parts += [(middle, end), (begin, middle)]
    return np.array(bad, np.int64)


def _converts(part: slice, convert: Callable[[slice], object]) -> bool:
    try:
        convert(part)
    except UNFIT:
        return False
    return True

"""Finds which of many values a conversion refuses, if it converts all or none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def find_bad(
    count: int,
    convert: Callable[[slice], object],
    faults: type[Exception] | tuple[type[Exception], ...],
    most: int | None = None,
) -> NDArray[np.int64]:
    """The positions, of `count` values, at which `convert` raises one of `faults`, ascending; the first `most`.

    Takes O(bad · log(count / bad)) calls.
    """
    bad: list[int] = []
    parts = [(0, count)]
    while parts and (most is None or len(bad) < most):
        begin, end = parts.pop()
        if begin == end or _converts(slice(begin, end), convert, faults):
            continue
        if end - begin == 1:
            bad.append(begin)
            continue
        middle = (begin + end) // 2
        parts += [(middle, end), (begin, middle)]
    return np.array(bad, np.int64)


def _converts(
    part: slice, convert: Callable[[slice], object], faults: type[Exception] | tuple[type[Exception], ...]
) -> bool:
    try:
        convert(part)
    except faults:
        return False
    return True

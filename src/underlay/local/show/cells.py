"""Chooses which columns of a wide table are shown, and formats values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

import pyarrow as pa

MAX_TEXT = 32
"""The most characters of a text that are shown. Numbers are never cut."""
ELIDED = "…"


def show_value(value: object, kind: pa.DataType) -> str:
    """A value in one line."""
    if value is None:
        return "NULL"
    text = str(value)
    if is_number(kind):
        return text
    text = " ".join(text.splitlines()) if "\n" in text or "\r" in text else text
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + ELIDED


def is_number(kind: pa.DataType) -> bool:
    """Whether values are aligned right and never cut."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def fitting(widths: Sequence[int], most: int) -> list[int]:
    """The columns that fit into `most`, in order: chosen from both ends to the middle, at least one."""
    if sum(widths) <= most:
        return list(range(len(widths)))
    count = len(widths)
    by_turns = chain.from_iterable(zip_longest(range((count + 1) // 2), range(count - 1, (count - 1) // 2, -1)))
    chosen: list[int] = []
    left = most
    for column in by_turns:
        if column is None or (chosen and widths[column] > left):
            break
        chosen.append(column)
        left -= widths[column]
    return sorted(chosen)

"""The types of the registry's columns: values that SQLite and PostgreSQL can both store, in the same way.

PostgreSQL accepts no NUL in a text and no long text in an index; a SQLite column accepts any value, whatever its type.
If somebody wrote a value of another type into the file, reading it raises WrongValue.
"""

from __future__ import annotations

import xxhash
from sqlalchemy import BigInteger, Dialect, Text
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.types import TypeDecorator

MOST_KEY_BYTES = 1_200
"""A row of a PostgreSQL index takes at most 2,704 bytes, and a key may consist of two long texts."""
_SURELY_SHORT = MOST_KEY_BYTES // 4
"""In characters: none takes more than four bytes."""
_REPLACEMENT = "\ufffd"


class WrongValue(InvalidRequestError):
    """A value of another type than its column's."""


def plain_text(text: str) -> str:
    """The text as it is stored. Idempotent."""
    return text.replace("\0", _REPLACEMENT) if "\0" in text else text


def key_text(text: str) -> str:
    """The text as stored in a key column. A text that cannot be stored is cut, and ends with a hash of the whole text.

    Idempotent. Different texts stay different.
    """
    if "\0" not in text and (len(text) <= _SURELY_SHORT or len(text.encode()) <= MOST_KEY_BYTES):
        return text
    end = _REPLACEMENT + xxhash.xxh3_128_hexdigest(text.encode())
    return plain_text(text)[: _SURELY_SHORT - len(end)] + end


class PlainText(TypeDecorator[str]):
    """Any text. NUL is stored as U+FFFD."""

    impl = Text
    cache_ok = True

    @property
    def python_type(self) -> type[str]:
        """What a row has."""
        return str

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """As it is stored."""
        return None if value is None else plain_text(value)

    def process_result_value(self, value: object, dialect: Dialect) -> str | None:
        """As it was stored."""
        if value is None or isinstance(value, str):
            return value
        raise WrongValue(f"a text is a {type(value).__name__}")


class KeyText(PlainText):
    """A text in a key; see `key_text`."""

    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """As it is stored."""
        return None if value is None else key_text(value)


class WholeNumber(TypeDecorator[int]):
    """A signed 64-bit integer."""

    impl = BigInteger
    cache_ok = True

    @property
    def python_type(self) -> type[int]:
        """What a row has."""
        return int

    def process_result_value(self, value: object, dialect: Dialect) -> int | None:
        """As it was stored. A sum of numbers may be a Decimal."""
        if isinstance(value, str | bytes | float):
            raise WrongValue(f"a number is a {type(value).__name__}")
        return value  # type: ignore[return-value]  # drivers give nothing else

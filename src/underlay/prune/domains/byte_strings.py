"""Columns of bytes: text, binary, fixed-length binary and UUIDs, ordered as unsigned bytes, a prefix first.

Text is compared as its UTF-8 bytes, which is also the order of its code points; nothing is normalised, folded
or padded. Bounds may be cut short as long as they are bounds: a minimum at or below and a maximum at or above
every value.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from underlay.prune.domains.domain import BoolArray, BoundArray, Domain, KeyArray, filled_values
from underlay.prune.domains.selection import NEVER, Key, Selection, span_of
from underlay.prune.predicates.operand import Operand
from underlay.prune.predicates.predicate import Op

_SHOWN_BYTES = 40


class ByteStrings(Domain):
    """What all byte types share. Keys are Python bytes: numpy's own byte strings lose trailing NULs."""

    def keys(self, bounds: BoundArray) -> tuple[KeyArray, BoolArray]:
        """The bounds as an array of `bytes`."""
        return filled_values(bounds, b"").astype(np.object_), np.ones(len(bounds), dtype=np.bool_)

    def select(self, op: Op, literal: Operand) -> Selection:
        """One span: a byte literal has one reading. Nothing is below the empty string."""
        point = self.encode(literal)
        if op is Op.LT and not point:
            return NEVER
        return Selection((span_of(op, point, point),))

    def exact_key(self, literal: Operand) -> bytes | None:
        """The literal's bytes."""
        return self.encode(literal)

    def plain_bytes(self, literal: Operand) -> tuple[bytes, ...] | None:
        """The bytes themselves, without a length."""
        return (self.encode(literal),)

    def show(self, key: Key) -> str:
        """Hexadecimal digits, cut after 40 bytes."""
        octets = _bytes_of(key)
        cut = "…" if len(octets) > _SHOWN_BYTES else ""
        return f"X'{octets[:_SHOWN_BYTES].hex().upper()}'{cut}"

    @abstractmethod
    def encode(self, literal: Operand) -> bytes:
        """The literal's bytes in this type. Raises BadPredicate for a literal of another kind."""


@dataclass(frozen=True, slots=True)
class Text(ByteStrings):
    """UTF-8 text, compared byte by byte."""

    @property
    def name(self) -> str:
        """`text`."""
        return "text"

    def encode(self, literal: Operand) -> bytes:
        """The UTF-8 of a text literal."""
        if not isinstance(literal, str):
            raise self.mismatch(literal, "Write text in single quotes.")
        try:
            return literal.encode()
        except UnicodeEncodeError as error:
            raise self.mismatch(ascii(literal), "The text holds half a surrogate pair.") from error

    def prefix_key(self, prefix: str | bytes) -> bytes | None:
        """The UTF-8 of the prefix."""
        return self.encode(prefix)

    def show(self, key: Key) -> str:
        """The text in quotes, cut after 40 characters; bytes that are not UTF-8 are escaped."""
        text = _bytes_of(key).decode(errors="backslashreplace")
        return f"'{text[:_SHOWN_BYTES]}'{'…' if len(text) > _SHOWN_BYTES else ''}"


@dataclass(frozen=True, slots=True)
class Binary(ByteStrings):
    """Bytes of any length."""

    @property
    def name(self) -> str:
        """`binary`."""
        return "binary"

    def encode(self, literal: Operand) -> bytes:
        """Bytes as they are; ASCII text without a backslash as its bytes, which every engine reads alike."""
        if isinstance(literal, bytes):
            return literal
        if isinstance(literal, str) and literal.isascii() and "\\" not in literal:
            return literal.encode()
        raise self.mismatch(literal, "Write bytes as X'0AFF'.")

    def prefix_key(self, prefix: str | bytes) -> bytes | None:
        """The bytes of the prefix."""
        return self.encode(prefix)


@dataclass(frozen=True, slots=True)
class FixedBinary(Binary):
    """Bytes of one length."""

    length: int

    @property
    def name(self) -> str:
        """`binary(n)`."""
        return f"binary({self.length})"

    def exact_key(self, literal: Operand) -> bytes | None:
        """The bytes when they have the length; otherwise none, since engines may pad."""
        octets = self.encode(literal)
        return octets if len(octets) == self.length else None

    def plain_bytes(self, literal: Operand) -> tuple[bytes, ...] | None:
        """The bytes when they have the length; otherwise unknown, since engines may pad."""
        octets = self.encode(literal)
        return (octets,) if len(octets) == self.length else None


@dataclass(frozen=True, slots=True)
class Uuids(ByteStrings):
    """UUIDs as 16 bytes in the order of their text."""

    @property
    def name(self) -> str:
        """`uuid`."""
        return "uuid"

    def encode(self, literal: Operand) -> bytes:
        """The 16 bytes of a UUID, of its usual text, or given as they are."""
        if isinstance(literal, UUID):
            return literal.bytes
        if isinstance(literal, bytes) and len(literal) == 16:
            return literal
        if isinstance(literal, str):
            try:
                return UUID(literal).bytes
            except ValueError:
                pass
        raise self.mismatch(literal, "Write UUID '00000000-0000-0000-0000-000000000000'.")

    def show(self, key: Key) -> str:
        """The usual text of a whole UUID."""
        octets = _bytes_of(key)
        return str(UUID(bytes=octets)) if len(octets) == 16 else ByteStrings.show(self, key)


def _bytes_of(key: Key) -> bytes:
    if not isinstance(key, bytes):
        raise TypeError(f"a byte column has the key {key!r}")
    return key

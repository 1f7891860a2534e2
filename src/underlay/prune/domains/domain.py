"""What a pruner must know about a column's type: its order, and what a literal means in it.

A domain turns bounds into *keys* (arrays that numpy compares in the type's own order), a comparison into the
`Selection` of keys that can satisfy it, and a literal into the bytes a Bloom filter was fed. It is bound to
the type *in the file*: bounds are never cast, literals are, and exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import BadPredicate
from underlay.prune.domains.selection import EVERYTHING, Key, Selection, unite
from underlay.prune.predicates.operand import Operand, format_operand
from underlay.prune.predicates.predicate import Op

KeyArray = NDArray[Any]  # Any: int64, uint64, float64, or objects (bytes, wide integers), by domain
BoolArray = NDArray[np.bool_]
BoundArray: TypeAlias = "NDArray[Any] | pa.Array[Any]"  # Any: as KeyArray; pyarrow arrays may hold nulls

_SHOWN_LITERAL_CHARS = 60


class Domain(ABC):
    """One column type. Subclasses are frozen values."""

    is_ordered: ClassVar[bool] = True
    holds_nan: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """The type as a reader of a message knows it."""

    @abstractmethod
    def keys(self, bounds: BoundArray) -> tuple[KeyArray, BoolArray]:
        """The bounds as keys, and which of them are values of this type."""

    @abstractmethod
    def select(self, op: Op, literal: Operand) -> Selection:
        """The keys that can satisfy `column op literal` in some engine.

        Raises BadPredicate when the literal's kind cannot be compared with the type.
        """

    def select_any(self, literals: Sequence[Operand]) -> Selection:
        """The keys that can equal one of the literals in some engine."""
        return unite(self.select(Op.EQ, literal) for literal in literals)

    def exact_key(self, literal: Operand) -> Key | None:
        """The one key that the literal equals in every engine; None when there is none, or not only one."""
        return None

    def prefix_key(self, prefix: str | bytes) -> bytes | None:
        """The bytes that keys with this prefix begin with; None when keys are not ordered by their bytes.

        Raises BadPredicate when values of the type have no prefix.
        """
        raise self.mismatch(prefix, "Only text and binary columns have prefixes.")

    @abstractmethod
    def plain_bytes(self, literal: Operand) -> tuple[bytes, ...] | None:
        """Every PLAIN encoding of the values equal to the literal; None when they are not known.

        An empty tuple means that no value of the type equals it.
        """

    @abstractmethod
    def show(self, key: Key) -> str:
        """A bound as a reader of a message would write it."""

    def mismatch(self, literal: Operand, hint: str) -> BadPredicate:
        """The error for a literal of a kind that this type is not compared with."""
        shown = format_operand(literal)
        if len(shown) > _SHOWN_LITERAL_CHARS:
            shown = f"{shown[:_SHOWN_LITERAL_CHARS]}…"
        return BadPredicate(
            f"a column of type {self.name} cannot be compared with {type(literal).__name__} {shown}",
            hint=hint,
        )


@dataclass(frozen=True, slots=True)
class Unordered(Domain):
    """A type whose bounds mean nothing: INT96, INTERVAL, FLOAT16, geohashes. Only null tests prune."""

    is_ordered: ClassVar[bool] = False
    type_name: str = "unordered"

    @property
    def name(self) -> str:
        """The type's own name, as given."""
        return self.type_name

    def keys(self, bounds: BoundArray) -> tuple[KeyArray, BoolArray]:
        """No bound is a key."""
        return np.zeros(len(bounds), dtype=np.int64), np.zeros(len(bounds), dtype=np.bool_)

    def select(self, op: Op, literal: Operand) -> Selection:
        """Everything: nothing is known of the order, so nothing is refused either."""
        return EVERYTHING

    def prefix_key(self, prefix: str | bytes) -> bytes | None:
        """Never known."""
        return None

    def plain_bytes(self, literal: Operand) -> tuple[bytes, ...] | None:
        """Never known."""
        return None

    def show(self, key: Key) -> str:
        """The key as Python prints it."""
        return str(key)


def present_mask(bounds: BoundArray) -> BoolArray:
    """Which entries of a bound array are not null."""
    if isinstance(bounds, np.ndarray):
        return np.ones(len(bounds), dtype=np.bool_)
    return bounds.is_valid().to_numpy(zero_copy_only=False)


def filled_values(bounds: BoundArray, filler: int | bytes) -> KeyArray:
    """A bound array as numpy, nulls replaced by `filler`."""
    if isinstance(bounds, np.ndarray):
        return bounds
    values = bounds.fill_null(filler) if bounds.null_count else bounds
    return values.to_numpy(zero_copy_only=False)

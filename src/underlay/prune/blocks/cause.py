"""Why no row of a block can match."""

from __future__ import annotations

from enum import IntEnum


class Cause(IntEnum):
    """The fact that drops a block. 0 in an array of causes means that the block is kept."""

    ROWLESS = 1
    """The block has no rows."""
    NEVER = 2
    """No value of the column's type can match."""
    ALL_NULL = 3
    """Every value is null."""
    NO_NULLS = 4
    """No value is null."""
    NO_NAN = 5
    """Only NaN matches, and the block is known to have none."""
    BELOW = 6
    """The maximum is below every value that matches."""
    ABOVE = 7
    """The minimum is above every value that matches."""
    GAP = 8
    """The block lies between two values that match, or on different sides of them by its two possible signs."""
    BLOOM = 9
    """The Bloom filter holds none of the values."""
    BRANCHES = 10
    """Every branch of an OR is ruled out, each for its own cause."""


KEPT = 0

"""Which blocks of rows may match a predicate, proven from statistics alone. Pure: no file is opened here."""

from underlay.prune.bounds import BloomProbe, ColumnBounds
from underlay.prune.coded import Booleans, Characters, Decimals, Times, Unit
from underlay.prune.domain import BoundArray, Domain, Unordered
from underlay.prune.evaluate import evaluate
from underlay.prune.floats import Floats
from underlay.prune.instant import Instant
from underlay.prune.octets import Binary, FixedBinary, Text, Uuids
from underlay.prune.predicate import (
    And,
    Between,
    ColumnPath,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Op,
    Operand,
    Predicate,
)
from underlay.prune.verdict import Cause, Verdict
from underlay.prune.whole import Addresses, AmbiguousIntegers, Integers

__all__ = [
    "Addresses",
    "AmbiguousIntegers",
    "And",
    "Between",
    "Binary",
    "BloomProbe",
    "Booleans",
    "BoundArray",
    "Cause",
    "Characters",
    "ColumnBounds",
    "ColumnPath",
    "Compare",
    "Decimals",
    "Domain",
    "FixedBinary",
    "Floats",
    "In",
    "Instant",
    "Integers",
    "IsNotNull",
    "IsNull",
    "Op",
    "Operand",
    "Predicate",
    "Text",
    "Times",
    "Unit",
    "Unordered",
    "Uuids",
    "Verdict",
    "evaluate",
]

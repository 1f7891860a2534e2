"""Which blocks of rows may match a predicate, and which must, proven from statistics alone; and which rows do.

Pure: no file is opened here. Text is read by `underlay.prune.where.parse_where`, Arrow expressions by
`underlay.prune.arrow.from_arrow`.
"""

from underlay.prune.bounds import BloomProbe, ColumnBounds
from underlay.prune.build import Column, col
from underlay.prune.cause import Cause
from underlay.prune.coded import Booleans, Characters, Decimals, Times, Unit
from underlay.prune.domain import BoundArray, Domain, Unordered
from underlay.prune.evaluate import evaluate
from underlay.prune.floats import Floats
from underlay.prune.instant import Instant
from underlay.prune.matches import matches
from underlay.prune.mention import columns_of, has_opaque
from underlay.prune.normalise import normalise
from underlay.prune.octets import Binary, FixedBinary, Text, Uuids
from underlay.prune.operand import ColumnPath, Operand
from underlay.prune.predicate import (
    FALSE,
    NULL,
    TRUE,
    And,
    Between,
    Compare,
    Constant,
    In,
    IsDistinct,
    IsNan,
    IsNotDistinct,
    IsNotNan,
    IsNotNull,
    IsNull,
    Like,
    Not,
    NotIn,
    Op,
    Opaque,
    Or,
    Predicate,
    StartsWith,
)
from underlay.prune.time_of_day import TimesOfDay
from underlay.prune.verdict import Verdict
from underlay.prune.whole import Addresses, AmbiguousIntegers, Integers

__all__ = [
    "FALSE",
    "NULL",
    "TRUE",
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
    "Column",
    "ColumnBounds",
    "ColumnPath",
    "Compare",
    "Constant",
    "Decimals",
    "Domain",
    "FixedBinary",
    "Floats",
    "In",
    "Instant",
    "Integers",
    "IsDistinct",
    "IsNan",
    "IsNotDistinct",
    "IsNotNan",
    "IsNotNull",
    "IsNull",
    "Like",
    "Not",
    "NotIn",
    "Op",
    "Opaque",
    "Operand",
    "Or",
    "Predicate",
    "StartsWith",
    "Text",
    "Times",
    "TimesOfDay",
    "Unit",
    "Unordered",
    "Uuids",
    "Verdict",
    "col",
    "columns_of",
    "evaluate",
    "has_opaque",
    "matches",
    "normalise",
]

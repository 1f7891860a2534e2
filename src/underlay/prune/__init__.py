"""Proves from statistics which blocks may match a predicate and which must, and filters rows by the same rules.

Pure: no file is opened here. Text is read by `underlay.prune.parse.sql.parse_where`, Arrow expressions by
`underlay.prune.parse.arrow.from_arrow`.
"""

from underlay.prune.blocks.cause import Cause
from underlay.prune.blocks.column_bounds import BloomProbe, ColumnBounds
from underlay.prune.blocks.evaluate import evaluate
from underlay.prune.blocks.verdict import Verdict
from underlay.prune.domains.byte_strings import Binary, FixedBinary, Text, Uuids
from underlay.prune.domains.domain import BoundArray, Domain, Unordered
from underlay.prune.domains.encoded_integers import Booleans, Characters, Decimals, Times, Unit
from underlay.prune.domains.floats import Floats
from underlay.prune.domains.integers import Addresses, AmbiguousIntegers, Integers
from underlay.prune.domains.time_of_day import TimesOfDay
from underlay.prune.predicates.column import Column, col
from underlay.prune.predicates.instant import Instant
from underlay.prune.predicates.normalise import normalise
from underlay.prune.predicates.operand import ColumnPath, Operand
from underlay.prune.predicates.predicate import (
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
    columns_of,
    has_opaque,
)
from underlay.prune.rows.matches import matches

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

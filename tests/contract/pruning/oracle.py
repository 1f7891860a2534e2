"""Which rows match, in plain Python: three-valued logic, NaN greatest and equal to itself, as in Spark, DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.contract.pruning.kinds import Kind
from tests.prune.oracles.reference import truth
from underlay.prune import And, Not, Or, Predicate


def answer(predicate: Predicate, row: Mapping[str, Any], kinds: Mapping[str, Kind]) -> bool | None:
    """True, False, or None for null. `row` holds keys by column."""
    match predicate:
        case And(parts):
            answers = [answer(part, row, kinds) for part in parts]
            return False if False in answers else None if None in answers else True
        case Or(parts):
            answers = [answer(part, row, kinds) for part in parts]
            return True if True in answers else None if None in answers else False
        case Not(part):
            found = answer(part, row, kinds)
            return None if found is None else not found
    name = predicate.column[-1]
    return truth(predicate, row[name], lambda literal: (kinds[name].key(literal),))

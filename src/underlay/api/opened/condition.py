"""Splits a user's condition into what the planner understands and what only Arrow or DuckDB can apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from underlay.errors import BadPredicate, InvalidRequest
from underlay.prune import TRUE, Predicate
from underlay.prune.parse.arrow import named_columns, split_filter
from underlay.scan.query import RestFilter
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.table_schema import TableSchema
from underlay.table.versions.snapshot import Snapshot

if TYPE_CHECKING:
    from underlay.prune.parse.parameters import Parameters

Where = str | Predicate | pc.Expression | None
"""A condition: SQL text, `col("a") > 1`, or an Arrow expression."""
Params = Sequence[object] | Mapping[str, object]
"""Values for `?` in order, or for `$name` by name."""


ReadWhere = tuple[Predicate, pc.Expression | RestFilter | None, tuple[str, ...]]


def read_where(where: Where, params: Params | None, snapshot: Snapshot) -> ReadWhere:
    """The condition for the planner, the rest that only Arrow or DuckDB can apply, and the columns of that rest."""
    if isinstance(where, str):
        return read_condition(where, snapshot.schema, params)
    if params is not None:
        raise InvalidRequest("parameters need a condition that is text", found=type(where).__name__)
    if where is None:
        return TRUE, None, ()
    if isinstance(where, pc.Expression):
        schema = to_arrow(snapshot.schema)
        predicate, rest = split_filter(where, schema)
        return predicate, rest, () if rest is None else tuple(named_columns(rest, schema))
    if not isinstance(where, Predicate):
        raise InvalidRequest(
            "not a condition", found=type(where).__name__, hint="Write text, col('a') > 1, or an Arrow expression."
        )
    return where, None, ()


def read_condition(
    where: str, schema: TableSchema, given: Params | None = None
) -> tuple[Predicate, RestFilter | None, tuple[str, ...]]:
    """DuckDB is loaded only for conditions beyond our own grammar."""
    if given is None:
        try:
            return _bind(where, schema, None), None, ()
        except BadPredicate as error:
            problem = error
    from underlay.prune.parse.parameters import number_parameters  # loads a parser of SQL, as below
    from underlay.prune.parse.sql import tokens_of

    text, parameters = number_parameters(where, tokens_of(where), given)
    if given is not None:
        try:
            return _bind(text, schema, parameters), None, ()
        except BadPredicate as error:
            problem = error
    from underlay.local.conditions.condition import split_condition  # loads DuckDB and pyarrow.dataset

    predicate, rest = split_condition(text, to_arrow(schema), problem, parameters)
    return predicate, rest, () if rest is None else rest.columns


@lru_cache(maxsize=256)
def _bind(where: str, schema: TableSchema, parameters: Parameters | None) -> Predicate:
    """Parsing takes longer than planning, and the same text comes again and again."""
    from underlay.prune.parse.bind import bind_where  # loads a parser of SQL, which takes long
    from underlay.prune.parse.parameters import NO_PARAMETERS

    return bind_where(where, to_arrow(schema), parameters or NO_PARAMETERS)

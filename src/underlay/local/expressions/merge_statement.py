"""A merge as a user writes it: a condition on rows of the table and of the source, and clauses in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from underlay.errors import InvalidRequest, UnknownColumn
from underlay.local.expressions.assign import Assignments, check_values
from underlay.local.expressions.scope import Scope, Side
from underlay.local.expressions.texts import SqlText, read_texts
from underlay.local.text.time_travel import quoted
from underlay.prune.parse.bind import resolve_path
from underlay.prune.parse.parameters import Parameters
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.table_schema import TableSchema
from underlay.values.literal import Literal
from underlay.values.parameters import Given

TARGET, SOURCE = 0, 1
"""The sides of a pair."""


class ClauseKind(Enum):
    """When a clause applies, and what it does."""

    MATCHED_UPDATE = "when matched, update"
    MATCHED_DELETE = "when matched, delete"
    NOT_MATCHED_INSERT = "when not matched, insert"
    NOT_MATCHED_BY_SOURCE_UPDATE = "when not matched by source, update"
    NOT_MATCHED_BY_SOURCE_DELETE = "when not matched by source, delete"

    @property
    def is_delete(self) -> bool:
        """Whether the row is deleted without a replacement."""
        return self in (ClauseKind.MATCHED_DELETE, ClauseKind.NOT_MATCHED_BY_SOURCE_DELETE)


MATCHED = (ClauseKind.MATCHED_UPDATE, ClauseKind.MATCHED_DELETE)
NOT_MATCHED = (ClauseKind.NOT_MATCHED_INSERT,)
NOT_MATCHED_BY_SOURCE = (ClauseKind.NOT_MATCHED_BY_SOURCE_UPDATE, ClauseKind.NOT_MATCHED_BY_SOURCE_DELETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextClause:
    """What happens to rows for which `predicate` holds and no earlier clause does.

    `values` are by column; None for all columns of the source except `except_columns`, and for a deletion.
    """

    kind: ClauseKind
    predicate: str | None = None
    values: Mapping[str, str | Literal] | None = None
    except_columns: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStatement:
    """A merge that is not yet bound to a version."""

    condition: str
    source_alias: str | None
    target_alias: str | None
    clauses: tuple[TextClause, ...] = ()
    given: Given | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundClause:
    """A clause whose texts were checked against the columns of a version and a source."""

    kind: ClauseKind
    predicate: SqlText | None
    assignments: Assignments | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundMerge:
    """The checked texts of a merge, with the scopes in which they are evaluated."""

    schema: TableSchema
    condition: SqlText
    clauses: tuple[BoundClause, ...]
    pairs: Scope
    target: Scope
    source: Scope

    @property
    def parameters(self) -> Parameters:
        """The values of its parameters."""
        return self.pairs.parameters

    def of(self, kinds: Sequence[ClauseKind]) -> list[tuple[int, BoundClause]]:
        """The clauses of some kinds, with their numbers from 1."""
        return [(at, one) for at, one in enumerate(self.clauses, 1) if one.kind in kinds]


def bind_merge(statement: MergeStatement, schema: TableSchema, source: pa.Schema) -> BoundMerge:
    """Bind the statement to these columns. Raises InvalidRequest, UnknownColumn with the position in the text."""
    target = Side(alias=statement.target_alias, schema=to_arrow(schema))
    given = Side(alias=statement.source_alias, schema=source)
    _check_aliases(statement)
    clauses = [_with_all(one, target, given) for one in statement.clauses]
    texts = [SqlText(place="the condition", text=statement.condition, is_condition=True)]
    for number, clause in enumerate(clauses, 1):
        texts += _texts_of(number, clause)
    read, parameters = read_texts(texts, [*target.schema.names, *source.names], statement.given)
    bound = BoundMerge(
        schema=schema,
        condition=read[0],
        clauses=(),
        pairs=Scope([target, given], parameters),
        target=Scope([target], parameters),
        source=Scope([given], parameters),
    )
    bound.pairs.check(bound.condition)
    left = iter(read[1:])
    return replace(
        bound,
        clauses=tuple(_bound(clause, left, bound, schema, statement.target_alias) for clause in clauses),
    )


def scope_of(bound: BoundMerge, kind: ClauseKind) -> Scope:
    """The rows that clauses of a kind may name."""
    if kind in MATCHED:
        return bound.pairs
    return bound.source if kind in NOT_MATCHED else bound.target


def _check_aliases(statement: MergeStatement) -> None:
    names = (statement.target_alias, statement.source_alias)
    for name in names:
        if name is not None and (not isinstance(name, str) or not name):
            raise InvalidRequest("an alias must be text that is not empty", found=repr(name))
    if names[0] is not None and names[1] is not None and names[0].lower() == names[1].lower():
        raise InvalidRequest("the table and the source have the same alias", found=names[0], hint="Choose another one.")


def _texts_of(number: int, clause: TextClause) -> Iterator[SqlText]:
    place = f"clause {number} ({clause.kind.value})"
    if clause.predicate is not None:
        yield SqlText(place=f"{place}, predicate", text=clause.predicate, is_condition=True)
    for name, value in (clause.values or {}).items():
        if isinstance(value, str):
            yield SqlText(place=f"{place}, {name}", text=value)


def _bound(
    clause: TextClause, texts: Iterator[SqlText], bound: BoundMerge, schema: TableSchema, alias: str | None
) -> BoundClause:
    scope = scope_of(bound, clause.kind)
    predicate = None if clause.predicate is None else next(texts)
    if predicate is not None:
        scope.check(predicate)
    assignments = None
    if clause.values is not None:
        values = {name: next(texts) if isinstance(value, str) else value for name, value in clause.values.items()}
        assignments = Assignments(values, schema, scope, alias=alias)
    return BoundClause(kind=clause.kind, predicate=predicate, assignments=assignments)


def _with_all(clause: TextClause, target: Side, source: Side) -> TextClause:
    """The clause with the columns that "all" stands for: those of the source, by name."""
    if clause.kind.is_delete:
        return clause
    if clause.values is not None:
        check_values(clause.values, clause.kind.value)
        return clause
    left_out = {resolve_path((name,), source.schema) for name in clause.except_columns}
    values: dict[str, str | Literal] = {}
    for name in source.schema.names:
        if (name,) in left_out:
            continue
        try:
            (column,) = resolve_path((name,), target.schema)
        except UnknownColumn as error:
            error.hint = f'{error.hint} Leave it out with except_cols=["{name}"].'
            raise error.at("the source") from None
        values[quoted(column)] = quoted(name) if source.alias is None else f"{quoted(source.alias)}.{quoted(name)}"
    if not values:
        raise InvalidRequest("no column is left", place=clause.kind.value)
    return TextClause(kind=clause.kind, predicate=clause.predicate, values=values)

"""A merge as a user writes it, and a merge bound to the frames of both sides, whose change is a DataFrame.

Texts are resolved in the scope that they are written for: both sides for matching rows, one side for rows without a
match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from underlay.errors import InvalidRequest, UnknownColumn
from underlay.runtime.locks import cached_property
from underlay.schema.table_schema import TableSchema
from underlay.spark.change.change_frame import ChangeFrame, RowAct
from underlay.spark.change.expressions import (
    Expression,
    as_column,
    attributes_of,
    check_condition,
    named,
    references,
    resolve,
    resolved_column,
)
from underlay.spark.change.new_values import NewValues
from underlay.spark.jvm.gateway import JavaObject, call, gateway_of, java_plan
from underlay.spark.types.spark_types import quoted

ClauseKind = Literal["matched", "not matched", "not matched by source"]
ClauseAction = Literal["update", "delete", "insert", "update_all", "insert_all"]
MATCHED: ClauseKind = "matched"
NOT_MATCHED: ClauseKind = "not matched"
NOT_MATCHED_BY_SOURCE: ClauseKind = "not matched by source"
_ACTIONS: Mapping[str, tuple[str, ...]] = {
    MATCHED: ("update", "update_all", "delete"),
    NOT_MATCHED: ("insert", "insert_all"),
    NOT_MATCHED_BY_SOURCE: ("update", "delete"),
}
_IN_SOURCE, _CLAUSE, _ACT = "__underlay_source", "__underlay_clause", "__underlay_act"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """What happens to rows for which `predicate` holds and no earlier clause of its kind does.

    `assignments` are those of `update` and `insert`; `except_columns` are left out of "all".
    """

    kind: ClauseKind
    action: ClauseAction
    predicate: Expression | None = None
    assignments: Mapping[str, Expression] | None = None
    except_columns: Sequence[str] = ()

    @property
    def act(self) -> RowAct:
        """What it does to a row."""
        return RowAct[self.action.removesuffix("_all").upper()]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMerge:
    """A merge that is not yet bound to a version."""

    on: Expression
    clauses: tuple[MergeClause, ...]
    source_alias: str
    target_alias: str
    source_qualifier: tuple[str, ...] = ()
    """The optional qualifier of the alias: the parts of the table's name, if the source has no alias of its own."""
    target_qualifier: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise InvalidRequest for invalid clauses."""
        if not self.clauses:
            raise InvalidRequest("a merge needs a clause", hint="Add one, such as when_matched_update_all().")
        if self.source_alias.lower() == self.target_alias.lower():
            raise InvalidRequest("the table and the source have the same alias", found=self.source_alias)
        last: set[str] = set()
        for clause in self.clauses:
            if clause.action not in _ACTIONS.get(clause.kind, ()):
                raise InvalidRequest(f"no clause when {clause.kind} can {clause.action}")
            if clause.kind in last:
                raise InvalidRequest(
                    f"a clause when {clause.kind} follows one without a predicate, and never applies",
                    hint="Only the last clause of a kind may lack a predicate.",
                )
            if clause.predicate is None:
                last.add(clause.kind)

    def of(self, kind: ClauseKind) -> list[tuple[int, MergeClause]]:
        """The clauses of a kind, with their numbers from 1."""
        return [(at, one) for at, one in enumerate(self.clauses, 1) if one.kind == kind]

    @property
    def is_of_pairs(self) -> bool:
        """Whether rows of the table that the source does not match stay as they are."""
        return not self.of(NOT_MATCHED_BY_SOURCE)


class JoinedMerge:
    """A merge of two frames: all columns of the table with `number`, and the source's. Raises AnalysisException,
    InvalidRequest and UnknownColumn."""

    def __init__(
        self, statement: FrameMerge, schema: TableSchema, target: DataFrame, number: str, source: DataFrame
    ) -> None:
        self._statement = statement
        self._schema = schema
        self._number = number
        self._gateway = gateway_of(target.sparkSession)
        self._target = named(target, (*statement.target_qualifier, statement.target_alias))
        marked = source.withColumn(_IN_SOURCE, f.lit(True))
        self._source = named(marked, (*statement.source_qualifier, statement.source_alias))
        self._names = source.columns
        pairs = self._target.join(self._source, as_column(statement.on), "inner")
        self._pairs = pairs
        self.condition = call(call(call(java_plan(pairs), "analyzed"), "condition"), "get")
        check_condition(self.condition, "the condition")
        self._predicates: dict[int, JavaObject] = {}
        self._values: dict[int, tuple[NewValues, list[JavaObject]]] = {}
        for kind, scope in (
            (MATCHED, pairs),
            (NOT_MATCHED, self._source),
            (NOT_MATCHED_BY_SOURCE, self._target),
        ):
            self._bind(statement.of(kind), scope)

    def _bind(self, clauses: Sequence[tuple[int, MergeClause]], scope: DataFrame) -> None:
        """Resolve all texts of a scope in one analysis."""
        texts: list[Expression] = []
        for number, clause in clauses:
            if clause.predicate is not None:
                texts.append(clause.predicate)
            if clause.act is not RowAct.DELETE:
                bound = NewValues(self._assignments(clause), self._schema, self._statement.target_alias)
                texts += bound.values
                self._values[number] = (bound, [])
        resolved = iter(resolve(scope, texts))
        for number, clause in clauses:
            if clause.predicate is not None:
                self._predicates[number] = next(resolved)
                check_condition(self._predicates[number], f"clause {number} (when {clause.kind})")
            if number in self._values:
                bound, values = self._values[number]
                values += [next(resolved) for _ in bound.values]

    def _assignments(self, clause: MergeClause) -> Mapping[str, Expression]:
        """The values of a clause; "all" is expanded to every column of the table, by name."""
        if not clause.action.endswith("_all"):
            return clause.assignments or {}
        left_out = {name.lower() for name in clause.except_columns}
        known = {name.lower(): name for name in self._names}
        found: dict[str, Expression] = {}
        for name in self._schema.names:
            if name.lower() in left_out:
                continue
            if name.lower() not in known:
                raise UnknownColumn(
                    f"the source has no column {name}",
                    place=f"when {clause.kind}, {clause.action.removesuffix('_all')} all",
                    found=", ".join(self._names),
                    hint="Name the columns and their values, or leave the column out with except_cols.",
                )
            found[quoted(name)] = f.col(f"{quoted(self._statement.source_alias)}.{quoted(known[name.lower()])}")
        return found

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The columns of the table that decide, or that new values depend on."""
        values = [one for _, resolved in self._values.values() for one in resolved]
        used = references([self.condition, *self._predicates.values(), *values])
        names = {name for at, name in attributes_of(self._target).items() if at in used}
        for number, (bound, _) in self._values.items():
            if self._statement.clauses[number - 1].act is RowAct.UPDATE:
                names |= bound.kept
        return tuple(name for name in self._schema.names if name in names)

    def source_ids(self) -> set[int]:
        """Catalyst's ids of the source's columns."""
        return set(attributes_of(self._source))

    def target_ids(self) -> dict[int, str]:
        """Catalyst's ids of the table's columns."""
        return attributes_of(self._target)

    def of_source(self, expressions: Sequence[JavaObject]) -> DataFrame:
        """Resolved expressions over the source alone."""
        columns = [resolved_column(self._gateway, one).alias(f"key{at}") for at, one in enumerate(expressions)]
        return self._source.select(*columns)

    def changes(self, locations: tuple[str, ...]) -> ChangeFrame:
        """The change that the merge makes."""
        statement = self._statement
        clause = f.col(_CLAUSE)
        joined = self._target.join(self._source, resolved_column(self._gateway, self.condition), self._how())
        chosen = self._chosen()
        acts: dict[RowAct, list[int]] = {}
        for number, one in enumerate(statement.clauses, 1):
            acts.setdefault(one.act, []).append(number)
        happens = _cases([(clause.isin(*numbers), f.lit(int(act))) for act, numbers in acts.items()])
        columns = self._columns(clause)
        frame = (
            joined.withColumn(_CLAUSE, chosen)
            .where(clause.isNotNull())
            .select(f.col(self._number), happens.alias(_ACT), *columns)
        )
        return ChangeFrame(frame=frame, number=self._number, act=_ACT, locations=locations)

    def _how(self) -> str:
        is_outer = bool(self._statement.of(NOT_MATCHED)), not self._statement.is_of_pairs
        return {(False, False): "inner", (True, False): "right", (False, True): "left", (True, True): "full"}[is_outer]

    def _chosen(self) -> Column:
        """The number of the clause that applies; null for none."""
        has_target, has_source = f.col(self._number).isNotNull(), f.col(_IN_SOURCE).isNotNull()
        when = {
            MATCHED: has_target & has_source,
            NOT_MATCHED: ~has_target,
            NOT_MATCHED_BY_SOURCE: ~has_source,
        }
        cases: list[tuple[Column, Column]] = []
        for number, clause in enumerate(self._statement.clauses, 1):
            applies = when[clause.kind]
            if number in self._predicates:
                applies = applies & resolved_column(self._gateway, self._predicates[number])
            cases.append((applies, f.lit(number)))
        return _cases(cases)

    def _columns(self, clause: Column) -> list[Column]:
        """The new values of each column, by the clause that applies."""
        by_clause: dict[int, dict[str, Column]] = {}
        for number, (bound, values) in self._values.items():
            keep = self._statement.clauses[number - 1].act is RowAct.UPDATE
            by_clause[number] = bound.bind(self._target, values, keep=keep)
        if not by_clause:
            return []
        return [
            _cases([(clause == number, values[name]) for number, values in by_clause.items()]).alias(name)
            for name in self._schema.names
        ]


def _cases(cases: Sequence[tuple[Column, Column]]) -> Column:
    """The value of the first case that holds; null when none does."""
    found = f.when(*cases[0])
    for condition, value in cases[1:]:
        found = found.when(condition, value)
    return found

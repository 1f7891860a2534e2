"""Splits any SQL condition on one row into a predicate that prunes blocks, and a filter that DuckDB applies to the
rest.

The predicate holds wherever the condition is true. It consists of the parts that `parse_where` understands; of the
filters that DuckDB itself pushes into a scan, after it folded constants, cast literals and turned things like `i + 1 =
2` into comparisons of a column; and of what `underlay.local.implied` derives from functions, such as `year(ts) = 2024`.
DuckDB then applies the whole condition to the remaining rows, just as `lake.sql` does. The rows themselves never pass
through DuckDB: it only says which to keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from sqlglot.tokenizer_core import TokenType

from underlay.errors import BadPredicate, InvalidRequest
from underlay.local.conditions.condition_text import checked_text, with_moments
from underlay.local.conditions.shared_engine import connected
from underlay.local.implied.bounds import is_told
from underlay.local.implied.derive import implied_by, parts_of
from underlay.local.sql.tables import has_unlike_type, refuse_alike_names
from underlay.local.text.statement import is_pushed_right, is_rewritten_right
from underlay.local.text.time_travel import quoted
from underlay.prune import FALSE, TRUE, Constant, Predicate, has_opaque
from underlay.prune.parse.arrow import from_arrow
from underlay.prune.parse.bind import check_literals, resolve_names
from underlay.prune.parse.parameters import NO_PARAMETERS, Parameters
from underlay.prune.parse.sql import parse_where, tokens_of
from underlay.prune.predicates.normalise import conjuncts, normalise, weaken
from underlay.prune.predicates.predicate import And
from underlay.schema.convert.half_floats import widen_table, widened

_UNLIKE_HINT = "Compare it with literals only, or use lake.sql, which rounds."
_ROWS = '"underlay rows"'
_ROW = "underlay row\x1f"
"""No column of a table has this name: names hold no control characters."""
_AGE = re.compile(r"\bage\W*\(", re.IGNORECASE)
Split = tuple[Predicate, "SqlCondition | None"]


@dataclass(frozen=True, slots=True)
class SqlCondition:
    """A condition that DuckDB applies. `schema` has the columns that it may name, spelled as in the table."""

    text: str
    schema: pa.Schema
    parameters: Parameters = NO_PARAMETERS

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.schema.names)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The rows for which the condition is true, in their order. Raises BadPredicate."""
        return rows.filter(pa.array(self.matches(rows)))

    def matches(self, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """A mask of the rows for which the condition is true. Raises BadPredicate."""
        numbers = pa.array(np.arange(rows.num_rows))
        given = widen_table(rows.select(self.columns)).append_column(_ROW, numbers)
        with connected(is_pushing=False, is_rewriting=is_rewritten_right(tokens_of(self.text))) as connection:
            connection.register("underlay rows", given)
            text = f'SELECT "{_ROW}" FROM {_ROWS} WHERE (\n{self.text}\n)'
            found = _execute(connection, text, self.parameters).to_arrow_reader(1 << 20).read_all()
        is_match = np.zeros(rows.num_rows, dtype=np.bool_)
        is_match[found.column(0).to_numpy()] = True
        return is_match

    def explain(self) -> Iterator[tuple[str, Predicate]]:
        """Each condition that AND joins, and its pruning predicate: TRUE for one that only filters rows."""
        with connected() as connection:
            parts = parts_of(connection, self.text) or [self.text]
        for part in parts:
            values = {name: value for name, value in self.parameters.values.items() if _names(part, name)}
            try:
                predicate, _ = _split_with(part, self.schema, Parameters(values))
            except InvalidRequest:  # it has a meaning only together with the others
                predicate = TRUE
            yield part, predicate

    def __str__(self) -> str:
        return self.text


def split_condition(text: str, schema: pa.Schema, problem: BadPredicate, parameters: Parameters) -> Split:
    """The predicate that prunes, and the condition that remains for rows; None when the predicate is exact.

    `problem` is why our own rules refused the text. It is raised when DuckDB refuses the text too, but our grammar
    accepts it: then it says which literal does not fit which column. Raises BadPredicate for a text that is not a
    condition on one row, UnknownColumn, and Unsupported for columns that DuckDB cannot tell apart.
    """
    try:
        checked = checked_text(text)
        now = with_moments(checked, schema)
        # the next query has another time, so that its text does not recur; age(x) counts from today
        is_lasting = now == checked and _AGE.search(now) is None
        return _split(now, schema, parameters) if is_lasting else _split_with(now, schema, parameters)
    except BadPredicate as error:
        is_ours = isinstance(error.__cause__, duckdb.Error)
        if is_ours and not has_opaque(parse_where(text, opaque=True, parameters=parameters)):
            raise problem from error
        raise


@lru_cache(maxsize=256)
def _split(text: str, schema: pa.Schema, parameters: Parameters) -> Split:
    return _split_with(text, schema, parameters)


def _split_with(text: str, schema: pa.Schema, parameters: Parameters) -> Split:
    tokens = tokens_of(text)
    words = {token.text.encode().lower() for token in tokens if token.token_type is not TokenType.STRING}
    named = tuple(name for name in schema.names if name.encode().lower() in words)  # A to Z alike, as DuckDB does
    if not named:
        return Constant(_evaluate(text, schema, parameters)), None
    read = pa.schema([schema.field(name) for name in named])
    refuse_alike_names(read)
    for field in read:
        if has_unlike_type(field.type):  # DuckDB cuts its values to microseconds
            raise BadPredicate(
                f"only comparisons with literals are exact for {field.type}", place=field.name, hint=_UNLIKE_HINT
            )
    is_pushing = is_pushed_right(tokens, parameters.values.values()) and is_rewritten_right(tokens)
    shown = widened(read)
    pushed = _pushed_by_duckdb(text, shown, schema, parameters, is_pushing=is_pushing)
    told = list(dict.fromkeys((*_understood(text, schema, parameters), *pushed)))
    with connected() as connection:
        implied = implied_by(connection, text, shown, parameters.values)
    parts = [*told, *(part for one in implied for part in conjuncts(one) if not is_told(part, told))]
    return normalise(And(tuple(dict.fromkeys(parts)))), SqlCondition(text, read, parameters)


def _understood(text: str, schema: pa.Schema, parameters: Parameters) -> Iterator[Predicate]:
    """The parts of the text that our own grammar understands."""
    for part in conjuncts(weaken(parse_where(text, opaque=True, parameters=parameters))):
        try:
            bound = resolve_names(part, schema)
            check_literals(bound, schema)
        except InvalidRequest:  # DuckDB knows better, or has failed already
            continue
        yield bound


class _Probe(ds.Dataset):
    """A table of one row of nulls, which records the filters that DuckDB pushes into its scan."""

    def __init__(self, row: pa.Table) -> None:
        self._row = row
        self.filters: list[pc.Expression] = []
        self.is_scanned = False

    @property
    def schema(self) -> pa.Schema:
        """The columns that the condition names."""
        return self._row.schema

    def scanner(  # type: ignore[override]  # what DuckDB asks for
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: object
    ) -> ds.Scanner:
        """A scan of the row."""
        self.is_scanned = True
        if filter is not None:
            self.filters.append(filter)
        chosen = None if columns is None else list(columns)
        return ds.Scanner.from_batches(iter(self._row.to_batches()), schema=self._row.schema, columns=chosen)


def _pushed_by_duckdb(
    text: str, read: pa.Schema, schema: pa.Schema, parameters: Parameters, *, is_pushing: bool
) -> list[Predicate]:
    """The filters that DuckDB pushes into a scan. Running the query over one row also checks it: literals that do not
    convert are errors only when there are rows.
    """
    row = pa.table([pa.nulls(1, field.type) for field in read], names=read.names)
    probe = _Probe(row)
    query = f"SELECT {quoted(read.names[0])} FROM {_ROWS} WHERE (\n{text}\n)"
    if is_pushing:
        with connected(schema) as connection:
            connection.register("underlay rows", probe)
            try:
                _execute(connection, query, parameters).fetchall()
            except duckdb.NotSupportedError:  # a filter that it cannot push, but could apply itself
                is_pushing = False
    if not is_pushing:
        with connected(schema, is_pushing=False) as connection:  # a failed transaction accepts no other query
            connection.register("underlay rows", row)
            _execute(connection, query, parameters).fetchall()
        return []
    if not probe.is_scanned:
        return [FALSE]  # DuckDB knows nothing of the rows: no row can match
    return [part for one in probe.filters for part in conjuncts(weaken(from_arrow(one, read)))]


def _evaluate(text: str, schema: pa.Schema, parameters: Parameters) -> bool | None:
    """The value of a condition that names no column."""
    query = f"SELECT CAST((\n{text}\n) AS BOOLEAN) WHERE true OR (\n{text}\n)"
    with connected(schema) as connection:
        ((value,),) = _execute(connection, query, parameters).fetchall()
    return None if value is None else bool(value)


def _execute(connection: duckdb.DuckDBPyConnection, query: str, parameters: Parameters) -> duckdb.DuckDBPyConnection:
    return connection.execute(query, dict(parameters.values) or None)


def _names(text: str, parameter: str) -> bool:
    """Whether a condition names a parameter."""
    tokens = tokens_of(text)
    return any(one.text == "$" and following.text.lower() == parameter for one, following in pairwise(tokens))

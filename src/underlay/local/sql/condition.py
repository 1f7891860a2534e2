"""Any SQL condition on one row: what prunes blocks of it, and DuckDB for the rest of the rows.

The predicate is what must hold wherever the condition is true: the parts that `parse_where` understands, and the
filters that DuckDB itself hands to a scan, after it folded constants, cast literals and turned things like
`ts::date = '2024-01-31'` or `i + 1 = 2` into comparisons of a column. The whole condition is then applied to the rows
that are left, by DuckDB and so as `lake.sql` does. Rows themselves never pass through DuckDB: it says which to keep.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from underlay.errors import BadPredicate, InvalidRequest, UnderlayError
from underlay.local.sql.duckdb_errors import from_duckdb
from underlay.local.sql.engine import Engine
from underlay.local.sql.statement import check_functions, is_pushed_right
from underlay.local.sql.tables import has_unlike_type, refuse_alike_names
from underlay.local.sql.time_travel import is_name, quoted
from underlay.prune import FALSE, Constant, Predicate, columns_of, has_opaque
from underlay.prune.parse.arrow import from_arrow
from underlay.prune.parse.bind import check_literals, resolve_names, unknown_column
from underlay.prune.parse.sql import parse_condition, parse_where, tokens_of
from underlay.prune.predicates.normalise import conjuncts, normalise, weaken
from underlay.prune.predicates.predicate import And

USE_SQL = "Use lake.sql for subqueries, aggregates, windows, parameters, random values and other tables."
_UNLIKE_HINT = "Compare it with a literal and nothing else, or use lake.sql, which rounds."
_ROWS = '"underlay rows"'
_CLOCKS = frozenset((
    "now", "today", "current_date", "current_time", "current_timestamp", "get_current_time", "get_current_timestamp",
    "transaction_timestamp", "current_localtime", "current_localtimestamp", "localtime", "localtimestamp",
))  # fmt: skip
"""Functions without arguments that tell the time, which is the same for all rows of a query."""
_HIDDEN_CLOCKS = frozenset(("ago", "pg_conf_load_time", "pg_postmaster_start_time", "txid_current"))
"""Functions that read a clock or a counter inside."""
_BARE_CLOCKS = frozenset(("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"))
_VOLATILE = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability = 'VOLATILE'"
_NO_COLUMN = re.compile(r'Referenced column "(.+?)" (?:was )?not found')
_OF_MANY_ROWS = re.compile("aggregate|window|unnest|subquer", re.IGNORECASE)
_REFUSED = (exp.Query, exp.Subquery, exp.Exists, exp.Star, exp.Columns, exp.Window, exp.Placeholder, exp.Parameter)


@dataclass(frozen=True, slots=True)
class SqlCondition:
    """A condition that DuckDB applies. `columns` are those it may name, as the table writes them."""

    text: str
    columns: tuple[str, ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The rows for which the condition is true, in their order. Raises BadPredicate."""
        numbers = pa.array(np.arange(rows.num_rows))
        given = rows.select(self.columns).append_column("underlay row", numbers)
        with _connection(is_pushing=False) as connection:
            connection.register("underlay rows", given)
            text = f'SELECT "underlay row" FROM {_ROWS} WHERE (\n{self.text}\n)'
            found = connection.execute(text).to_arrow_reader(1 << 20).read_all()
        is_match = np.zeros(rows.num_rows, dtype=bool)
        is_match[found.column(0).to_numpy()] = True
        return rows.filter(pa.array(is_match))

    def __str__(self) -> str:
        return self.text


def split_condition(text: str, schema: pa.Schema, problem: BadPredicate) -> tuple[Predicate, SqlCondition | None]:
    """The predicate that prunes, and the condition that is left for rows; None when the predicate is exact.

    `problem` is why our own rules did not take the text; it is raised when DuckDB does not take it either, and our
    grammar does: then it says which literal does not fit which column.
    Raises BadPredicate for what is not a condition on one row, UnknownColumn, and Unsupported for columns that DuckDB
    takes for the same.
    """
    try:
        return _split(_with_moments(_checked(text), schema), schema)
    except BadPredicate as error:
        if isinstance(error.__cause__, duckdb.Error) and not has_opaque(parse_where(text, opaque=True)):
            raise problem from error
        raise


@lru_cache(maxsize=256)
def _split(text: str, schema: pa.Schema) -> tuple[Predicate, SqlCondition | None]:
    tokens = tokens_of(text)
    words = {token.text.encode().lower() for token in tokens if token.token_type is not TokenType.STRING}
    named = tuple(name for name in schema.names if name.encode().lower() in words)  # A to Z alike, as DuckDB does
    if not named:
        return Constant(_evaluate(text, schema)), None
    read = pa.schema([schema.field(name) for name in named])
    refuse_alike_names(read)
    for field in read:
        if has_unlike_type(field.type):  # DuckDB cuts its values to microseconds
            raise BadPredicate(
                f"only comparisons with literals are exact for {field.type}", place=field.name, hint=_UNLIKE_HINT
            )
    is_pushing = is_pushed_right(tokens, ())
    pushed = _pushed_by_duckdb(text, read, schema, is_pushing=is_pushing)
    if is_pushing and "TIMESTAMP WITH TIME ZONE" in text:
        for part in _compared_with_constants(text):
            pushed += _pushed_with_zone(part, read)
    parts = [*_understood(text, schema), *pushed]
    return normalise(And(tuple(dict.fromkeys(parts)))), SqlCondition(text, named)


def _understood(text: str, schema: pa.Schema) -> Iterator[Predicate]:
    """Conditions that our own grammar finds to follow from the text."""
    for part in conjuncts(weaken(parse_where(text, opaque=True))):
        try:
            bound = resolve_names(part, schema)
            check_literals(bound, schema)
        except InvalidRequest:  # DuckDB knows better, or has said already that it does not
            continue
        yield bound


class _Probe(ds.Dataset):
    """One row of nulls, and the filters that DuckDB would have it scanned with."""

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


def _pushed_by_duckdb(text: str, read: pa.Schema, schema: pa.Schema, *, is_pushing: bool) -> list[Predicate]:
    """What DuckDB hands to a scan. Running the query over one row also says whether it is one: literals that do not
    convert are errors only when there are rows."""
    row = pa.table([pa.nulls(1, field.type) for field in read], names=read.names)
    probe = _Probe(row)
    query = f"SELECT {quoted(read.names[0])} FROM {_ROWS} WHERE (\n{text}\n)"
    if is_pushing:
        with _connection(schema) as connection:
            connection.register("underlay rows", probe)
            try:
                connection.execute(query).fetchall()
            except duckdb.NotSupportedError:  # a filter that it cannot hand over, and could apply itself
                is_pushing = False
    if not is_pushing:
        with _connection(schema, is_pushing=False) as connection:  # a transaction that failed takes no other query
            connection.register("underlay rows", row)
            connection.execute(query).fetchall()
        return []
    if not probe.is_scanned:
        return [FALSE]  # DuckDB knows nothing of the rows: no row can match
    return [part for one in probe.filters for part in conjuncts(weaken(from_arrow(one, read)))]


def _pushed_with_zone(text: str, read: pa.Schema) -> list[Predicate]:
    """What DuckDB hands to a scan about times without a zone that are compared with those of a zone, such as now().

    It casts the column then, and hands over nothing. Its zone is UTC: a column that has UTC as its zone is the same.
    """
    zoned = pa.schema([_in_utc(field) for field in read])
    names = {field.name for field in read if not field.equals(zoned.field(field.name))}
    try:
        found = _pushed_by_duckdb(text, zoned, read, is_pushing=True) if names else []
    except InvalidRequest:  # a function that does not take a time with a zone
        return []
    return [part for part in found if {path[0] for path in columns_of(part)} & names]


def _compared_with_constants(text: str) -> Iterator[str]:
    """Parts of a conjunction that compare a bare column with what names no column: only in these does another type of
    the column certainly mean the same."""
    tree = parse_condition(text)
    for part in tree.flatten() if isinstance(tree, exp.And) else (tree,):
        bare = part.unnest()
        if isinstance(bare, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ):
            sides = (bare.this, bare.expression)
            names = [list(side.find_all(exp.Column)) for side in sides]
            if any(names[one] == [sides[one]] and not names[1 - one] for one in (0, 1)):
                yield bare.sql("duckdb")


def _in_utc(field: pa.Field[pa.DataType]) -> pa.Field[pa.DataType]:
    is_naive = isinstance(field.type, pa.TimestampType) and field.type.tz is None and field.type.unit != "ns"
    return field.with_type(pa.timestamp("us", "UTC")) if is_naive else field


def _evaluate(text: str, schema: pa.Schema) -> bool | None:
    """The value of a condition that names no column."""
    with _connection(schema) as connection:
        ((value,),) = connection.execute(f"SELECT CAST((\n{text}\n) AS BOOLEAN) WHERE true OR (\n{text}\n)").fetchall()
    return None if value is None else bool(value)


@lru_cache(maxsize=256)
def _checked(text: str) -> str:
    """The text as DuckDB writes names and bytes. Raises BadPredicate for what is not a question about one row, or has
    another answer every time."""
    tree, tokens = parse_condition(text), tokens_of(text)
    is_by_place = any(token.token_type is TokenType.HASH for token in tokens)
    if is_by_place or any(isinstance(node, _REFUSED) for node in tree.walk()):
        raise BadPredicate(f"{text[:80]}: not a condition on the columns of one row", hint=USE_SQL)
    engine, volatile = _engine()
    try:
        check_functions(tokens, {*engine.refused_functions, *volatile, *_HIDDEN_CLOCKS, "columns"})
    except InvalidRequest as error:
        raise BadPredicate(error.problem.partition(":")[0], hint=USE_SQL) from None
    return _replaced(text, tokens, _in_duckdb_words)


def _in_duckdb_words(text: str, tokens: Sequence[Token], number: int) -> tuple[int, str] | None:
    token = tokens[number]
    if token.token_type is TokenType.IDENTIFIER and text[token.start] == "`":
        return 1, quoted(token.text)
    return (1, f"from_hex('{token.text}')") if token.token_type is TokenType.HEX_STRING else None


def _with_moments(text: str, schema: pa.Schema) -> str:
    """The time as one moment for all rows: every batch of them is a query of its own to DuckDB."""
    lowered = text.lower()
    if not any(clock in lowered for clock in _CLOCKS):
        return text
    columns = {name.encode().lower().decode() for name in schema.names}
    with _connection() as connection:  # one transaction: every clock tells its begin
        return _replaced(text, tokens_of(text), partial(_moment, connection, columns))


def _moment(
    connection: duckdb.DuckDBPyConnection, columns: Collection[str], text: str, tokens: Sequence[Token], number: int
) -> tuple[int, str] | None:
    clock = tokens[number].text.lower()
    if clock not in _CLOCKS or not is_name(tokens[number]):
        return None
    is_call = [one.text for one in tokens[number + 1 : number + 3]] == ["(", ")"]
    is_field = number > 0 and tokens[number - 1].token_type is TokenType.DOT
    if is_call and (is_field or text[tokens[number].start] in '"`'):
        raise BadPredicate(f"{clock}() is written without a schema and quotes here", hint=USE_SQL)
    if not is_call and (is_field or clock in columns or clock not in _BARE_CLOCKS):
        return None
    call = f"{clock}()" if is_call else clock
    ((value, kind),) = connection.execute(f"SELECT CAST({call} AS VARCHAR), typeof({call})").fetchall()
    return 3 if is_call else 1, f"CAST('{value}' AS {kind})"


def _replaced(
    text: str, tokens: Sequence[Token], replace: Callable[[str, Sequence[Token], int], tuple[int, str] | None]
) -> str:
    """The text with other words for some tokens: `replace` says for how many, and which. The rest stays as it is."""
    pieces, at, number = [], 0, 0
    while number < len(tokens):
        instead = replace(text, tokens, number)
        if instead is not None:
            pieces += [text[at : tokens[number].start], instead[1]]
            at = tokens[number + instead[0] - 1].end + 1
        number += 1 if instead is None else instead[0]
    return "".join((*pieces, text[at:]))


_lock = Lock()
_engines: dict[tuple[int, bool], tuple[Engine, frozenset[str]]] = {}
"""By process, as the threads of a database do not survive a fork."""


def _engine(*, is_pushing: bool = True) -> tuple[Engine, Collection[str]]:
    """The database that all conditions share, and its functions that have another value at every call.

    One thread keeps the order of rows; scans run many conditions side by side.
    """
    with _lock:
        if (os.getpid(), is_pushing) not in _engines:
            engine = Engine(is_open=False, is_pushing=is_pushing, threads=1)
            connection = engine.begin()
            volatile = frozenset(name for (name,) in connection.execute(_VOLATILE).fetchall())
            connection.close()
            for other in [one for one in _engines if one[0] != os.getpid()]:
                del _engines[other]
            _engines[os.getpid(), is_pushing] = engine, volatile
        return _engines[os.getpid(), is_pushing]


@contextmanager
def _connection(schema: pa.Schema | None = None, *, is_pushing: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of its own, with errors as ours."""
    engine, _ = _engine(is_pushing=is_pushing)
    with _lock:  # threads of a scan open theirs from one database
        connection = engine.begin()
    try:
        yield connection
    except duckdb.Error as error:
        raise _translated(error, schema) from error
    finally:
        connection.close()


def _translated(error: duckdb.Error, schema: pa.Schema | None) -> UnderlayError:
    found = from_duckdb(error, (), ())
    if type(found) is not InvalidRequest:
        return found
    missing = _NO_COLUMN.search(found.problem)
    if missing and schema is not None:
        return unknown_column(missing[1], list(schema.names))
    problem = found.problem.partition("\n")[0]
    return BadPredicate(problem, hint=USE_SQL if _OF_MANY_ROWS.search(problem) else None)

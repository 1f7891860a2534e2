"""Checks a statement before it runs: its size, its words, and the syntax tree of a query."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import duckdb

from underlay.errors import InvalidRequest
from underlay.local.clauses.reader import place_of
from underlay.local.sql.duckdb_errors import from_duckdb
from underlay.local.sql.engine import Engine
from underlay.local.text.statement import changing_from, explained_from
from underlay.local.text.time_travel import Rewritten, is_name, rewrite_time_travel
from underlay.local.text.words import Word, WordType, words_of
from underlay.runtime.locks import cached_property
from underlay.server.lockdown.functions import ALLOWED_TABLE_FUNCTIONS, is_allowed
from underlay.server.lockdown.tree import Node, Relations, check_tree, refused_function

MOST_BYTES = 256 << 10
MOST_WORDS = 50_000
MOST_NESTED = 200
_MOST_TREE_BYTES = 64 << 20
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_FUNCTIONS = (
    "SELECT lower(function_name), bool_or(function_type IN ('table', 'table_macro')),"
    " bool_or(function_type NOT IN ('table', 'table_macro')), bool_or(stability IS DISTINCT FROM 'CONSISTENT')"
    " FROM duckdb_functions() WHERE function_type <> 'pragma' GROUP BY ALL"
)
_INNER = "SELECT lower(schema_name), lower(view_name) FROM duckdb_views() WHERE internal"
_SCHEMAS = frozenset(("information_schema", "pg_catalog"))
_SERIALISED = "SELECT json_serialize_sql($1::VARCHAR, skip_null := true, skip_empty := true)"
_VIEWS = ("tables", "versions", "files", "blocks", "sources", "jobs", "statements")
SYSTEM_VIEWS = frozenset(f"underlay.{name}" for name in _VIEWS)
_SIGNATURES = (
    "SELECT lower(function_name), any_value(function_type), list(DISTINCT parameters), any_value(description)"
    " FROM duckdb_functions() GROUP BY ALL ORDER BY ALL"
)
_KEYWORDS = "SELECT keyword_name FROM duckdb_keywords() ORDER BY ALL"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStatement:
    """A statement that may run. `is_stable`: the same versions of its tables give the same answer."""

    is_change: bool
    is_stable: bool
    tree: Node | None = None
    """DuckDB's syntax tree of a query."""


class Lockdown:
    """Checks statements with the engine's own parser and list of functions. One for each process; not thread-safe."""

    def __init__(self) -> None:
        engine = Engine(is_open=False, is_pushing=True, threads=1)
        self._connection = engine.connect()
        self._engine = engine

    @cached_property
    def _functions(self) -> list[tuple[str, bool, bool, bool]]:
        return self._connection.execute(_FUNCTIONS).fetchall()

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(name for name, *_ in self._functions)

    @cached_property
    def _of_tables(self) -> frozenset[str]:
        return frozenset(name for name, is_table, *_ in self._functions if is_table)

    @cached_property
    def _unstable(self) -> frozenset[str]:
        """Functions whose value differs from call to call or query to query. Macros count as what they call; only
        clocks matter.
        """
        return frozenset(name for name, _, is_plain, is_unstable in self._functions if is_plain and is_unstable)

    @cached_property
    def _inner(self) -> frozenset[str]:
        """Names of the engine's own views that can be used without a schema."""
        found = self._connection.execute(_INNER).fetchall()
        return frozenset(view for schema, view in found if schema != "information_schema")

    def check(self, text: str, tables: Collection[str]) -> CheckedStatement:
        """Raise InvalidRequest or TableNotFound unless the text is one statement on these tables that may run."""
        if len(text.encode(errors="surrogatepass")) > MOST_BYTES:
            raise InvalidRequest("the statement is too long", expected=f"at most {MOST_BYTES:,} bytes")
        rewritten = rewrite_time_travel(text)
        words = words_of(text)
        _check_size(text, words)
        if changing_from(rewritten.tokens) is not None:
            self._check_words(text, words, is_change=True)
            return CheckedStatement(is_change=True, is_stable=False)
        self._check_words(text, words, is_change=False)
        return self._check_query(rewritten, tables)

    def words(self) -> dict[str, object]:
        """The words that a statement may use: keywords, and functions with their parameters."""
        functions = [
            {"name": name, "kind": kind, "parameters": parameters, "description": text}
            for name, kind, parameters, text in self._connection.execute(_SIGNATURES).fetchall()
            if is_allowed(name) and name[0].isalpha()
        ]
        keywords = [word for (word,) in self._connection.execute(_KEYWORDS).fetchall()]
        return {"keywords": keywords, "functions": functions}

    def cast(self, value: object, kind: str) -> object:
        """Cast a parameter to a type that `check_type` accepted. Raises InvalidRequest."""
        try:
            ((found,),) = self._connection.execute(f"SELECT CAST($1 AS {kind})", [value]).fetchall()
        except duckdb.Error as error:
            raise InvalidRequest(f"a parameter cannot be of type {kind}", found=repr(value)[:80]) from error
        return found

    def _check_words(self, text: str, words: Sequence[Word], *, is_change: bool) -> None:
        for word, following in pairwise(words):
            name = word.text.lower()
            is_called = following.token_type is WordType.L_PAREN and is_name(word) and name in self._known
            is_refused = not is_allowed(name)
            if is_change:
                is_refused = is_refused or (name in self._of_tables and name not in ALLOWED_TABLE_FUNCTIONS)
            if is_called and is_refused:
                raise refused_function(name, place_of(text, word.start))
        if not is_change:
            return
        for word in words:
            if is_name(word) and word.text.lower() in (self._inner | _SCHEMAS):
                raise InvalidRequest(
                    "a change cannot name a view of the engine", place=place_of(text, word.start), found=word.text
                )

    def _check_query(self, rewritten: Rewritten, tables: Collection[str]) -> CheckedStatement:
        words = [word for word in rewritten.tokens if word.token_type is not WordType.SEMICOLON]
        text, first = rewritten.text, words[0].text.upper() if words else ""
        is_listing = [word.text.lower() for word in words if word.text.lower() != "all"][:2] == ["show", "tables"]
        if not words or (is_listing and len(words) <= 5):
            return CheckedStatement(
                is_change=False, is_stable=False
            )  # answered from names, or refused with what is allowed
        if first == "EXPLAIN":
            at = explained_from(words)
            if at >= len(words):
                return CheckedStatement(is_change=False, is_stable=False)
            before = len(text[: words[at].start].encode(errors="surrogatepass"))
            text = f"{' ' * before}{text[words[at].start :]}"  # positions count from the beginning of the whole text
        known = {table.lower() for table in tables} | SYSTEM_VIEWS
        known |= {f"{one.schema}.{one.table}".lower() for one in rewritten.travels}
        statement = self._tree(text)
        is_stable = check_tree(statement, Relations(tables=known, inner=self._inner), self._unstable)
        names_views = any(word.text.lower() == "underlay" for word in words)
        if first == "EXPLAIN":
            return CheckedStatement(is_change=False, is_stable=False)
        return CheckedStatement(is_change=False, is_stable=is_stable and not names_views, tree=statement)

    def _tree(self, text: str) -> Node:
        """The syntax tree of one query. Raises InvalidRequest for everything else."""
        ((found,),) = self._connection.execute(_SERIALISED, [text]).fetchall()
        if len(found) > _MOST_TREE_BYTES:
            raise InvalidRequest("the syntax tree of the statement is too large", hint="Run parts of it.")
        try:
            tree = json.loads(found)
        except RecursionError:
            raise InvalidRequest("the statement is nested too deeply") from None
        if tree.get("error"):
            try:
                self._connection.extract_statements(text)
            except duckdb.Error as error:
                raise from_duckdb(error, (), ()) from error
            raise InvalidRequest(
                "this form of query is not available",
                found=str(tree.get("error_message")),
                hint="Write a SELECT; name the values of PIVOT with IN.",
            )
        statements = tree.get("statements", ())
        if len(statements) != 1:
            raise InvalidRequest("more than one statement", hint="Run one statement at a time.")
        statement: Node = statements[0]
        return statement


def _check_size(text: str, words: Sequence[Word]) -> None:
    if len(words) > MOST_WORDS:
        raise InvalidRequest("the statement has too many words", expected=f"at most {MOST_WORDS:,}", found=len(words))
    depth = 0
    for word in words:
        is_sign = word.token_type in (WordType.L_PAREN, WordType.R_PAREN, WordType.SIGN)
        depth += is_sign and (word.text in _OPENING) - (word.text in _CLOSING)
        if depth > MOST_NESTED:
            raise InvalidRequest(
                "the statement is nested too deeply",
                place=place_of(text, word.start),
                expected=f"at most {MOST_NESTED} levels",
            )

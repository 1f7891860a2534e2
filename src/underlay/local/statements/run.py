"""Runs a statement that changes tables: parses its clauses, then calls the verb for it, which commits once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from underlay.errors import InvalidRequest
from underlay.local.clauses.parse import RowChange, parse_statement
from underlay.local.clauses.reader import place_of
from underlay.local.sql.result import SqlResult
from underlay.local.sql.tables import Resolve, Views
from underlay.local.statements.explain import explain
from underlay.local.statements.lake import StatementLake
from underlay.local.statements.queries import StatementQueries
from underlay.local.statements.run_definitions import run_definition
from underlay.local.statements.run_rows import run_rows
from underlay.local.statements.values import StatementValues
from underlay.local.text.statement import explained_from
from underlay.local.text.words import Word, words_of
from underlay.values.parameters import Given

_INK = re.compile(r"\S")


def run_statement(
    text: str,
    lake: StatementLake,
    resolve: Resolve,
    given: Mapping[str, object] | None,
    parameters: Given | None,
    views: Views | None = None,
) -> SqlResult:
    """Run one statement that changes a table. Returns one row of counts, or the rows of RETURNING.

    EXPLAIN changes nothing.

    Raises InvalidRequest with the position in the text for what cannot be parsed or does not match the table,
    TableNotFound, and what the verb raises. Then nothing is changed.
    """
    words = words_of(text)
    is_explained = words[0].text.upper() == "EXPLAIN"
    if is_explained:
        text = _without_explain(text, words)
    values = StatementValues(text, parameters)
    before, statement = parse_statement(text)
    queries = StatementQueries(values, before, resolve, lake.names, given, views)
    if is_explained:
        return SqlResult.of_table(explain(statement, lake, queries))
    if isinstance(statement, RowChange):
        return SqlResult.of_table(run_rows(statement, lake, queries))
    return SqlResult.of_table(run_definition(statement, lake, queries).to_arrow())


def _without_explain(text: str, words: list[Word]) -> str:
    """The statement without EXPLAIN, at its position in the text."""
    begin = words[explained_from(words)].start
    if words[1].start < begin:
        raise InvalidRequest(
            "EXPLAIN of a change takes no options, and never changes anything",
            place=place_of(text, words[1].start),
            found=words[1].text,
            hint="Write EXPLAIN and the statement.",
        )
    return f"{_INK.sub(' ', text[:begin])}{text[begin:]}"

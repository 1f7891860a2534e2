"""Prepares a condition's text for DuckDB: quotes names, turns bytes and clocks into values, refuses aggregates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache, partial

import duckdb
import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from underlay.errors import BadPredicate, InvalidRequest
from underlay.local.conditions.shared_engine import USE_SQL, connected, shared_engine
from underlay.local.text.statement import check_functions
from underlay.local.text.time_travel import is_name, quoted
from underlay.prune.parse.sql import parse_condition, tokens_of

_CLOCKS = frozenset((
    "now", "today", "current_date", "current_time", "current_timestamp", "get_current_time", "get_current_timestamp",
    "transaction_timestamp", "current_localtime", "current_localtimestamp", "localtime", "localtimestamp",
))  # fmt: skip
"""Functions without arguments that return the time, which is the same for all rows of a query."""
_HIDDEN_CLOCKS = frozenset(("ago", "pg_conf_load_time", "pg_postmaster_start_time", "txid_current"))
"""Functions that read a clock or a counter internally."""
_BARE_CLOCKS = frozenset(("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"))
_HIDDEN_BLANKS = frozenset("\u200b\u2060\ufeff")
"""Zero-width blanks, which end names in DuckDB and are part of them elsewhere."""
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.HEREDOC_STRING, TokenType.NATIONAL_STRING)
_REFUSED = (exp.Query, exp.Subquery, exp.Exists, exp.Star, exp.Columns, exp.Window)


@lru_cache(maxsize=256)
def checked_text(text: str) -> str:
    """The text with names and bytes as DuckDB writes them. Raises BadPredicate for a text that is not a condition on
    one row, or whose value changes from call to call.
    """
    tree, tokens = parse_condition(text), tokens_of(text)
    if any(_HIDDEN_BLANKS & set(token.text) for token in tokens if token.token_type not in _QUOTED):
        raise BadPredicate(f"{text[:80]!a}: a zero-width character is part of a name", hint="Delete it.")
    is_by_place = any(token.token_type is TokenType.HASH for token in tokens)
    if is_by_place or any(isinstance(node, _REFUSED) for node in tree.walk()):
        raise BadPredicate(f"{text[:80]}: not a condition on the columns of one row", hint=USE_SQL)
    engine = shared_engine()
    try:
        check_functions(tokens, {*engine.refused_functions, *engine.volatile, *_HIDDEN_CLOCKS, "columns"})
    except InvalidRequest as error:
        raise BadPredicate(error.problem.partition(":")[0], hint=USE_SQL) from None
    names = {
        place
        for column in tree.find_all(exp.Column)
        if isinstance(column.this, exp.Identifier) and column.name.lower() in engine.reserved
        for place in [column.this.meta.get("start")]
        if place is not None
    }
    return _replaced(text, tokens, partial(_in_duckdb_words, names))


def _in_duckdb_words(names: Collection[int], text: str, tokens: Sequence[Token], number: int) -> tuple[int, str] | None:
    token = tokens[number]
    is_quoted = token.token_type is TokenType.IDENTIFIER
    if (is_quoted and text[token.start] == "`") or (not is_quoted and token.start in names):
        return 1, quoted(token.text)
    return (1, f"from_hex('{token.text}')") if token.token_type is TokenType.HEX_STRING else None


def with_moments(text: str, schema: pa.Schema) -> str:
    """The text with one fixed time for all rows: each batch of rows is a separate query to DuckDB."""
    return all_with_moments([text], schema.names)[0]


def all_with_moments(texts: Sequence[str], names: Iterable[str]) -> list[str]:
    """The same for all texts of a statement, with one time. `names` are the existing columns."""
    if not any(clock in text.lower() for text in texts for clock in _CLOCKS):
        return list(texts)
    columns = {name.encode().lower().decode() for name in names}
    with connected() as connection:  # in one transaction every clock shows its begin
        return [_replaced(text, tokens_of(text), partial(_moment, connection, columns)) for text in texts]


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
    """The text with some tokens replaced: `replace` says how many, and by which words. The rest stays as it is."""
    pieces, at, number = [], 0, 0
    while number < len(tokens):
        instead = replace(text, tokens, number)
        if instead is not None:
            pieces += [text[at : tokens[number].start], instead[1]]
            at = tokens[number + instead[0] - 1].end + 1
        number += 1 if instead is None else instead[0]
    return "".join((*pieces, text[at:]))

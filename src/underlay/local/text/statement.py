"""Checks which SQL may run: one statement that reads, and no function that reaches out of the lake."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import duckdb

from underlay.errors import InvalidRequest
from underlay.local.text.time_travel import Token, is_name
from underlay.local.text.words import Word, WordType, words_of

_MAX_INT64 = 2**63 - 1
_READ_TYPES = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_READ_WORDS = frozenset((
    "SELECT", "WITH", "FROM", "VALUES", "EXPLAIN", "DESCRIBE", "DESC", "SHOW", "SUMMARIZE", "TABLE",
    "PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER", "(",
))  # fmt: skip
_CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "COPY", "REPLACE"))
CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "COMMENT"))
"""First words of statements that change tables."""
_INNER_CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE", "COPY"))
_CHANGE_HINT = "A query only reads. Statements that change tables begin with what they do, such as INSERT INTO."
_READ_HINT = (
    "Write SELECT, WITH, FROM, VALUES, EXPLAIN, DESCRIBE, SHOW or SUMMARIZE, or a change alone: INSERT, UPDATE, DELETE,"
    " MERGE, TRUNCATE, CREATE, ALTER, DROP or COMMENT."
)

HARMLESS_FUNCTIONS = frozenset((
    "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "icu_calendar_names",
    "pg_timezone_names", "pragma_version", "pragma_show", "pragma_table_info", "summary", "test_all_types",
    "duckdb_columns", "duckdb_functions", "duckdb_keywords", "duckdb_schemas", "duckdb_tables", "duckdb_types",
    "duckdb_views", "duckdb_databases",
))  # fmt: skip
"""Table functions that show only the lake's tables and constants."""

_MANY_ROWS = frozenset((
    "JOIN", "WITH", "UNION", "INTERSECT", "EXCEPT", "UNNEST", "RANGE", "GENERATE_SERIES", "REPEAT", "PIVOT", "UNPIVOT",
    "OVER", "WINDOW", "QUALIFY", "CUBE", "ROLLUP", "SETS", "TABLE", "VALUES", "EXISTS",
))  # fmt: skip
"""Words of statements that may produce more rows than one pass over the table has."""
_AFTER_FROM = frozenset(("WHERE", "GROUP", "ORDER", "LIMIT", "HAVING", "OFFSET", ";"))

WRITING_FUNCTIONS = frozenset(("write_log",))
"""Scalar functions whose effects other queries can see."""


def check_statement(
    text: str,
    words: Sequence[Word],
    connection: duckdb.DuckDBPyConnection,
    refused_functions: Callable[[], Collection[str]],
) -> None:
    """Raise InvalidRequest unless the text is one statement that reads. Raises duckdb.Error for bad syntax.

    The list of refused functions is queried only if the text calls a function.
    """
    tokens = list(words)
    while tokens and tokens[-1].token_type == WordType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise InvalidRequest("the text has no statement", hint=_READ_HINT)
    if any(token.token_type == WordType.SEMICOLON for token in tokens):
        raise InvalidRequest("more than one statement", hint="Run one statement at a time.")
    if any(following.token_type is WordType.L_PAREN and is_name(token) for token, following in pairwise(tokens)):
        check_functions(tokens, refused_functions())
    first = _check_first(tokens)
    _check_inner(tokens)
    _check_type(tokens, text, connection)
    if first == "EXPLAIN":
        _check_explained(tokens, text, connection)


def check_functions(tokens: Sequence[Token], refused: Collection[str]) -> None:
    """Raise InvalidRequest when one of these functions is called."""
    for token, following in pairwise(tokens):
        name = token.text.lower()
        if following.token_type.name == "L_PAREN" and name in refused and is_name(token):
            raise InvalidRequest(f"the function {name} is not available: SQL reaches the lake's tables only")


def _check_first(tokens: Sequence[Word]) -> str:
    first = tokens[0].text.upper()
    if first not in _READ_WORDS:
        hint = _CHANGE_HINT if first in _CHANGES else _READ_HINT
        raise InvalidRequest("not a statement that reads", found=first, hint=hint)
    return first


def _check_inner(tokens: Sequence[Word]) -> None:
    """Raise InvalidRequest for a change before or after the queries of WITH, which DuckDB 2 calls a SELECT or MULTI."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        word = token.text.upper()
        if (
            before.token_type in (WordType.L_PAREN, WordType.R_PAREN)
            and token.token_type != WordType.IDENTIFIER
            and word in _INNER_CHANGES
            and (is_name(after) or after.token_type == WordType.L_PAREN)
        ):
            hint = f'{_CHANGE_HINT} A column of this name is written as "{token.text}".'
            raise InvalidRequest("not a statement that reads", found=word, hint=hint)


def _check_type(tokens: Sequence[Word], text: str, connection: duckdb.DuckDBPyConnection) -> None:
    """Check the type. For a pivot DuckDB first creates a type of the values found, then runs the query: two statements,
    or one of type MULTI.
    """
    statements = connection.extract_statements(text)
    kind = statements[-1].type
    may_be_two = has_pivot(tokens)
    is_read = kind in _READ_TYPES or (may_be_two and kind == duckdb.StatementType.MULTI)
    if not is_read or (len(statements) > 1 and not may_be_two):
        raise InvalidRequest("not a statement that reads", found=kind.name, hint=_CHANGE_HINT)


def has_pivot(tokens: Sequence[Word]) -> bool:
    """Whether a statement may contain a pivot."""
    return any(token.text.upper().startswith("PIVOT") for token in tokens)


def _check_explained(tokens: Sequence[Word], text: str, connection: duckdb.DuckDBPyConnection) -> None:
    """EXPLAIN ANALYZE runs what it explains."""
    at = explained_from(tokens)
    if at < len(tokens) and _check_first(tokens[at:]) != "EXPLAIN":
        _check_type(tokens[at:], text[tokens[at].start :], connection)


def explained_from(tokens: Sequence[Word]) -> int:
    """Where the statement begins that a leading EXPLAIN explains."""
    at = 1
    while at < len(tokens) and tokens[at].text.upper() in ("ANALYZE", "VERBOSE"):
        at += 1
    if at < len(tokens) and tokens[at].token_type == WordType.L_PAREN:
        is_option = [word.text.upper() for word in tokens[at + 1 : at + 2]] not in (
            ["SELECT"],
            ["WITH"],
            ["FROM"],
            ["("],
        )
        closing = next((n for n in range(at, len(tokens)) if tokens[n].token_type == WordType.R_PAREN), at)
        at = closing + 1 if is_option else at
    return at


def changing_from(tokens: Sequence[Word]) -> int | None:
    """The position of the verb in a statement that changes tables: first, after EXPLAIN, or after the queries of WITH.

    None for a statement that reads.
    """
    at = explained_from(tokens) if tokens and tokens[0].text.upper() == "EXPLAIN" else 0
    at = _after_queries(tokens, at)
    is_change = at < len(tokens) and tokens[at].token_type is WordType.VAR and tokens[at].text.upper() in CHANGES
    return at if is_change else None


def _after_queries(tokens: Sequence[Word], at: int) -> int:
    """Where the statement continues after the queries of WITH, if they begin here."""
    if at >= len(tokens) or tokens[at].token_type is not WordType.VAR or tokens[at].text.upper() != "WITH":
        return at
    depth = 0
    for number in range(at + 1, len(tokens)):
        token = tokens[number]
        is_after = depth == 0 and tokens[number - 1].token_type is WordType.R_PAREN
        if is_after and token.text != "," and token.text.upper() not in ("AS", "USING"):
            return number
        depth += (token.token_type is WordType.L_PAREN) - (token.token_type is WordType.R_PAREN)
    return at


def check_given(text: object, parameters: object) -> None:
    """Raise InvalidRequest for a statement that is no text, or parameters that are no list and have no names."""
    if not isinstance(text, str):
        raise InvalidRequest("a statement must be text", found=type(text).__name__)
    is_list = isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes)
    if parameters is not None and not is_list and not isinstance(parameters, Mapping):
        raise InvalidRequest(
            "parameters must be a list, or values by name",
            found=type(parameters).__name__,
            hint="Write [value] for one of them.",
        )


@lru_cache(maxsize=256)
def reads_one_table(text: str) -> bool:
    """Whether the statement is one SELECT from one table, so that its work is proportional to the table's rows.

    May say no for such a statement, but never says yes for another.
    """
    words = [token.text.upper() for token in words_of(text)]
    if words[:1] != ["SELECT"] or words.count("SELECT") != 1 or words.count("FROM") != 1 or _MANY_ROWS & set(words):
        return False
    begin = words.index("FROM") + 1
    end = next((at for at in range(begin, len(words)) if words[at] in _AFTER_FROM), len(words))
    return end - begin >= 3 and not {",", "("} & set(words[begin:end])


def is_pushed_right(tokens: Sequence[Token], parameters: Iterable[object]) -> bool:
    """Whether DuckDB pushes its filters to Arrow with the right meaning.

    It pushes `x <= 'nan'` as true, also for nulls, and fails for a list with numbers above 2^63.
    """
    texts = (token.text for token in tokens if token.token_type.name in ("STRING", "NUMBER"))
    return not any(map(_is_misread, (*texts, *parameters)))


def is_rewritten_right(tokens: Sequence[Token]) -> bool:
    """Whether DuckDB simplifies its expressions without changing their meaning.

    It takes `date_trunc('year', t) <> '2024-05-01'`, which no start of a year equals, for true, also where t is null;
    and `try_cast(n as tinyint) > 5` for `n > 5`, also where n is no tinyint.
    """
    words = {token.text.upper() for token in tokens}
    return not (words & _CUTTING and words & _EQUATING) and "TRY_CAST" not in words


def _is_misread(value: object) -> bool:
    text = str(value).strip().lower().lstrip("+-")
    return text == "nan" or (text.isdecimal() and int(text) > _MAX_INT64)


_CUTTING = frozenset({"DATE_TRUNC", "DATETRUNC"})
_EQUATING = frozenset({"=", "==", "<>", "!=", "IN", "IS", "NULLIF", "CASE"})
_QUOTED = re.compile("'[^']*'")
_WORTH = re.compile(
    r"\bwhere\b.*(::|\b(cast|try_cast|year|date_part|datepart|extract|date_trunc|datetrunc|last_day|epoch\w*|lower|lcase"
    r"|upper|ucase|ilike|substr|substring|left|coalesce|ifnull|nullif|abs|round|floor|ceil|ceiling|trunc|zone"
    r"|\w*contains|\w*has)\b|[-+*/@\[])",
    re.IGNORECASE | re.DOTALL,
)


def may_imply(text: str) -> bool:
    """Whether a statement may contain a condition that DuckDB does not push into a scan itself. Cheap; a no is
    certain.
    """
    return _WORTH.search(_QUOTED.sub("''", text)) is not None

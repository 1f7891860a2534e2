"""Finds where `dataset.table.` before a column means the table that a statement changes, not a source of a subquery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from underlay.local.text.time_travel import is_name, travel_end
from underlay.local.text.words import Word, WordType

QUERIES = frozenset(("SELECT", "TABLE", "VALUES", "FROM", "WITH", "PIVOT", "UNPIVOT", "DESCRIBE", "SUMMARIZE", "SHOW"))
"""The first words of queries."""
_AFTER_TABLES = frozenset(
    (
        "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT", "ON",
        "USING", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "NATURAL", "POSITIONAL", "ASOF",
        "SEMI", "ANTI", "LATERAL", "QUALIFY", "WINDOW", "TABLESAMPLE", "PIVOT", "UNPIVOT", "PIVOT_WIDER",
        "PIVOT_LONGER", "FOR", "AT", "RETURNING", "SELECT",
    )
)  # fmt: skip
"""Words that may follow a table and are not an alias."""
NAME_WORDS = 4
"""The number of words in `dataset.table.` before a column."""


@dataclass(slots=True)
class _Scope:
    """The scope of the whole text, or of a subquery in it."""

    reads_table: bool = False
    """Whether it reads the table too, under the table's own name."""


def reads_table(words: Sequence[Word], dataset: str, table: str) -> bool:
    """Whether a change's sources name the table itself without an alias, outside of subqueries."""
    return _found(words, dataset, table)[0].reads_table


def changed_table_names(words: Sequence[Word], dataset: str, table: str, *, has_alias: bool) -> list[int]:
    """The words where a `dataset.table.column` begins that means the changed table.

    In a subquery that reads the table itself without an alias, the name means the subquery's rows. The same holds where
    the changed table has an alias: there, the name must not mean the changed table if a row of the subquery may bear
    it.
    """
    return [
        at
        for at, scopes in _found(words, dataset, table)[1]
        if not any(scope.reads_table for scope in scopes) and (len(scopes) == 1 or not has_alias)
    ]


def _found(words: Sequence[Word], dataset: str, table: str) -> tuple[_Scope, list[tuple[int, list[_Scope]]]]:
    """The outermost scope, and each occurrence of the table's name before a column, with the scopes around it."""
    outermost = _Scope()
    open_scopes: list[_Scope | None] = [outermost]
    found: list[tuple[int, list[_Scope]]] = []
    for at, word in enumerate(words):
        if word.token_type is WordType.L_PAREN:
            is_query = at + 1 < len(words) and is_word(words[at + 1], QUERIES)
            open_scopes.append(_Scope() if is_query else None)
        elif word.token_type is WordType.R_PAREN and len(open_scopes) > 1:
            open_scopes.pop()
        elif is_named(words, at, (dataset, table)):
            scopes = [scope for scope in open_scopes if scope is not None]
            if at + 3 < len(words) and words[at + 3].token_type is WordType.DOT:
                found.append((at, scopes))
            elif not _has_alias(words, at + 3):
                scopes[-1].reads_table = True
    return outermost, found


def is_named(words: Sequence[Word], at: int, names: Sequence[str]) -> bool:
    """Whether `a.b` begins at a word: these names with dots between them, ignoring case."""
    ahead = words[at : at + 2 * len(names) - 1]
    return (
        len(ahead) == 2 * len(names) - 1
        and not (at and words[at - 1].token_type is WordType.DOT)
        and all(word.token_type is WordType.DOT for word in ahead[1::2])
        and all(
            is_name(word) and word.text.lower() == name.lower() for word, name in zip(ahead[::2], names, strict=True)
        )
    )


def is_word(word: Word, words: frozenset[str]) -> bool:
    """Whether the token is one of these words, unquoted."""
    return word.token_type is WordType.VAR and word.text.upper() in words


def _has_alias(words: Sequence[Word], at: int) -> bool:
    """Whether an alias is here, after a table."""
    at = travel_end(words, at) or at
    if at >= len(words):
        return False
    return is_word(words[at], frozenset(("AS",))) or (is_name(words[at]) and not is_word(words[at], _AFTER_TABLES))

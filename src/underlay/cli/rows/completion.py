"""Completes words in the shell: keywords, datasets, tables, and columns of tables that the text names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from underlay.errors import UnderlayError
from underlay.local.text.time_travel import quoted
from underlay.local.text.words import Word, WordType, words_of

if TYPE_CHECKING:
    from underlay.api.lake import Lake

KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "OFFSET", "HAVING", "JOIN", "LEFT JOIN", "USING", "ON",
    "AS", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE", "ILIKE", "CASE", "WHEN", "THEN",
    "ELSE", "END", "DISTINCT", "UNION ALL", "EXCEPT", "INTERSECT", "WITH", "VALUES", "EXPLAIN", "ANALYZE", "DESCRIBE",
    "SUMMARIZE", "SHOW TABLES", "PIVOT", "UNPIVOT", "QUALIFY", "OVER", "PARTITION BY", "CAST", "INTERVAL", "TIMESTAMP",
    "INSERT INTO", "UPDATE", "SET", "DELETE FROM", "MERGE INTO", "WHEN MATCHED", "WHEN NOT MATCHED", "TRUNCATE",
    "CREATE TABLE", "CREATE OR REPLACE TABLE", "ALTER TABLE", "ADD COLUMN", "DROP TABLE", "PARTITIONED BY", "SORTED BY",
    "DATE", "TRUE", "FALSE", "NULL", "ASC", "DESC", "NULLS LAST", "FILTER", "VERSION AS OF", "TIMESTAMP AS OF",
    "count", "sum", "avg", "min", "max", "coalesce", "round", "date_trunc", "year", "month", "now",
)  # fmt: skip
_TYPED = re.compile(r"[\w.]*$")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


class SqlCompleter(Completer):
    """Completes names of a lake. Lists its tables once in a while, and looks up their columns when the text names
    them.
    """

    def __init__(self, lake: Lake, commands: Iterable[str]) -> None:
        self._lake = lake
        self._commands = tuple(commands)
        self._tables: list[str] | None = None
        self._columns: dict[str, list[str]] = {}

    def forget(self) -> None:
        """List tables and columns again, as a new statement may find others."""
        self._tables = None
        self._columns.clear()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What may follow the letters before the cursor."""
        before = document.text_before_cursor
        if before.startswith("\\") and " " not in before:
            yield from _matching(before, self._commands, len(before))
            return
        found = _TYPED.search(before)
        typed = found[0] if found else ""
        dataset, dot, name = typed.rpartition(".")
        if dot:
            yield from _matching(name, self._after_dot(dataset, document.text), len(name))
        elif typed:
            yield from _matching(typed, self._names(document.text), len(typed))

    def _names(self, text: str) -> list[str]:
        tables = self.tables()
        columns = [_written(column) for table in self._named(text) for column in self.columns(table)]
        datasets = sorted({_written(table.partition(".")[0]) for table in tables})
        return [*columns, *map(_written_table, tables), *datasets, *KEYWORDS]

    def _after_dot(self, owner: str, text: str) -> list[str]:
        """Tables of a dataset, or columns of a table or an alias."""
        fold = owner.strip('"').lower()
        inner = [table.partition(".")[2] for table in self.tables() if table.partition(".")[0].lower() == fold]
        owners = [table for table in self.tables() if fold in (table.lower(), table.lower().partition(".")[2])]
        if not inner and not owners:
            owners = self._named(text)  # an alias
        return [*map(_written, inner), *(_written(column) for table in owners for column in self.columns(table))]

    def _named(self, text: str) -> list[str]:
        """The tables that the text names."""
        try:
            words = words_of(text)
        except UnderlayError:
            return []
        pairs = {
            f"{before.text}.{after.text}".lower()
            for before, dot, after in zip(words, words[1:], words[2:], strict=False)
            if dot.token_type is WordType.DOT and _is_name(before) and _is_name(after)
        }
        return [table for table in self.tables() if table.lower() in pairs]

    def tables(self) -> list[str]:
        """The lake's tables; none if it cannot be read just now."""
        if self._tables is None:
            try:
                self._tables = [table.name for table in self._lake.tables()]
            except UnderlayError:
                return []
        return self._tables

    def columns(self, table: str) -> list[str]:
        """The columns of a table; none if it cannot be read just now."""
        if table not in self._columns:
            try:
                self._columns[table] = list(self._lake.table(table).schema.names)
            except UnderlayError:
                return []
        return self._columns[table]


def _is_name(word: Word) -> bool:
    return word.token_type in (WordType.VAR, WordType.IDENTIFIER)


def _matching(typed: str, candidates: Iterable[str], length: int) -> Iterator[Completion]:
    fold = typed.lower()
    for candidate in dict.fromkeys(candidates):
        if candidate.lower().lstrip('"').startswith(fold) and candidate != typed:
            is_lower = candidate.isupper() and typed.islower()
            yield Completion(candidate.lower() if is_lower else candidate, start_position=-length)


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name.lower()) else quoted(name)


def _written_table(name: str) -> str:
    dataset, _, table = name.partition(".")
    return f"{_written(dataset)}.{_written(table)}"

"""Asks on a terminal before SQL deletes or updates all rows of a table, or drops a table or a column.

Without a terminal nobody can answer: scripts are not asked, as in other databases' shells.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from underlay.cli.common.output import is_confirmed
from underlay.errors import UnderlayError
from underlay.local.text.words import words_of

if TYPE_CHECKING:
    from underlay.api.lake import Lake

_MAY_BE_ASKED = {"DELETE", "UPDATE", "TRUNCATE", "DROP", "ALTER", "WITH"}


def is_agreed(lake: Lake, text: str, *, yes: bool) -> bool:
    """Whether to run a statement. One that cannot be parsed is run, which reports why."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    try:
        what = _what_is_lost(lake, text)
    except UnderlayError:
        return True
    return what is None or is_confirmed(what)


def _what_is_lost(lake: Lake, text: str) -> str | None:
    words = words_of(text)
    if not words or words[0].text.upper() not in _MAY_BE_ASKED:
        return None
    from underlay.local.clauses.definitions import AlterTable, CommentOn, CreateTable
    from underlay.local.clauses.parse import parse_statement
    from underlay.local.clauses.syntax import Delete, Insert, Truncate, Update, WrittenMerge
    from underlay.local.statements.target import known_as

    _, statement = parse_statement(text)
    name = known_as(statement.target, [one.name for one in lake.tables()])
    if name is None or isinstance(statement, Insert | WrittenMerge | CreateTable | CommentOn):
        return None
    if isinstance(statement, AlterTable):
        drops = any(words_of(step.piece.text)[0].text.upper() == "DROP" for step in statement.steps)
        return str(lake.sql(f"EXPLAIN {text}")) if drops else None
    if isinstance(statement, Delete | Update) and statement.where is not None:
        return None
    rows = f"{len(lake.table(name)):,} rows"
    if isinstance(statement, Delete | Truncate):
        return f"{name}: all {rows} would be deleted"
    if isinstance(statement, Update):
        return f"{name}: all {rows} would be updated"
    return f"{name}: the table would be dropped, with {rows} and all its versions"

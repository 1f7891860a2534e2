"""Brings the names that a statement mentions up to date before Spark resolves them, whoever committed.

The text is not parsed: every word that is a table's name counts, even in a comment. A word too many only costs a look
at a head.
"""

from __future__ import annotations

import re

from underlay.api.lake import Lake
from underlay.errors import Damaged, NotFound, UnderlayError, Unsupported
from underlay.spark.catalog.follow import follow_lake, follow_table
from underlay.spark.catalog.session_catalog import LOG, Names
from underlay.spark.catalog.version_name import has_version
from underlay.spark.catalog.view_entry import ViewEntry

_WORD = re.compile(r"`((?:[^`]|``)+)`|(\w+)")
_NAME = r"(?:`(?:[^`]|``)+`|\w+)"
_QUALIFIED = re.compile(
    rf"\b(?:from|join|into|overwrite|table|update|using|describe|desc|view|exists)\s+({_NAME})\s*\.\s*({_NAME})",
    re.IGNORECASE,
)
_LISTING = re.compile(r"\s*(?:show|use|describe|desc)\b", re.IGNORECASE)
_VIEW = re.compile(rf"\bview\s+(?:if\s+not\s+exists\s+)?(?:{_NAME}\s*\.\s*)?({_NAME})", re.IGNORECASE)


def follow_text(names: Names, text: str) -> None:
    """Point the names that a text of SQL mentions at the newest versions, within each lake's staleness.

    A table that cannot be read loses its name, and the log says why. Raises Unavailable when a store cannot be reached.
    """
    words = {(quoted or plain).replace("``", "`").lower() for quoted, plain in _WORD.findall(text)}
    for view in words & names.views.keys():
        words |= names.views[view]
    mentioned = names.mentioned(words)
    for entry in mentioned:
        _follow_entry(names, entry)
    pairs = [(_plain(database), _plain(table)) for database, table in _QUALIFIED.findall(text)]
    if _LISTING.match(text) or any(pair not in names for pair in pairs):
        follow_catalogs(names)
    if mentioned and (made := _VIEW.search(text)):
        names.views[_plain(made[1])] = words


def follow_name(names: Names, parts: list[str], *, is_table: bool = False) -> None:
    """Point a single name at the newest version. An unknown name may be a new table's, or a database's unless it
    `is_table`.
    """
    key = parts[-2].lower() if len(parts) > 1 else None, parts[-1].lower()
    mentioned = [entry for entry in names.mentioned({key[1]}) if key[0] in (None, entry.key[0])]
    for entry in mentioned:
        _follow_entry(names, entry)
    if not mentioned if len(parts) > 1 else not is_table:
        follow_catalogs(names)
    for words in [names.views[key[1]]] if key[1] in names.views else []:
        for entry in names.mentioned(words):
            _follow_entry(names, entry)


def follow_catalogs(names: Names) -> None:
    """Learn which tables exist, in case others created, dropped or renamed some."""
    for lake in list(names.lakes.values()):
        number = lake.catalog_number()
        if names.catalogs.get(lake.url) == number:
            continue
        try:
            followed = follow_lake(names, lake, is_catalog_only=True)
        except UnderlayError as error:
            LOG.warning("Spark does not see the newest tables of %s: %s", lake.url, error)  # and nothing that is gone
            continue
        names.catalogs[lake.url] = number
        for name, failure in followed.left_out.items():
            LOG.warning("Spark has no name %s: %s", name, failure)


def _follow_entry(names: Names, entry: ViewEntry) -> None:
    lake = names.lakes.get(entry.lake_url)
    if lake is None or (not has_version(entry.name) and _is_newest(lake, entry)):
        return
    follow_table(names, lake, entry.name)


def _is_newest(lake: Lake, entry: ViewEntry) -> bool:
    try:
        table = lake.table(entry.name)
        found = (table.state_id, table.read_head().revision.table_folder)
    except (Unsupported, NotFound, Damaged):
        return False  # whoever puts the name says so
    return found == (entry.state_id, entry.folder)


def _plain(name: str) -> str:
    return (name[1:-1].replace("``", "`") if name.startswith("`") else name).lower()

"""Names that may include a version: `taxi.trips`, `taxi.trips@v7` (or `@7`), `taxi.trips@audit` (a tag).

A tag that is spelled like a version cannot be named this way; `read_table` takes version and tag separately.
"""

from __future__ import annotations

import re

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.spark.relation.relation import pin

_MARK = "@"
_VERSION = re.compile(r"v?([0-9]+)")


def open_named(lake: Lake, name: str) -> Table:
    """The table, pinned to the version that a name says, or to the newest.

    Raises TableNotFound, VersionNotFound, and NotFound for a tag.
    """
    plain, separator, point = name.partition(_MARK)
    found = lake.table(plain)
    if not separator:
        found.writable().head()  # looks for the newest version even if the lake may be stale
        return pin(found)
    version = _VERSION.fullmatch(point)
    return found.at(version=int(version[1])) if version else found.at(tag=point)


def has_version(name: str) -> bool:
    """Whether a name includes a version."""
    return _MARK in name


def without_version(name: str) -> str:
    """The name of the table alone."""
    return name.partition(_MARK)[0]

"""Which table, and which version of it, a command means."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import InvalidRequest, TableNotFound, VersionNotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """A point in a table's history: one of the three, or none for the newest version."""

    version: int | None = None
    as_of: str | None = None
    tag: str | None = None


def open_table(lake: Lake, name: str, at: At | None = None) -> Table:
    """The table; `name@7` and `name@audit` are a version and a tag. Raises TableNotFound, VersionNotFound, NotFound."""
    plain, separator, point = name.partition("@")
    at = at or At()
    chosen = sum(choice is not None for choice in (at.version, at.as_of, at.tag)) + bool(separator)
    if chosen > 1:
        raise InvalidRequest("more than one version is asked for", hint="Give one of @, --version, --as-of and --tag.")
    if separator:
        at = At(version=int(point)) if point.isascii() and point.isdigit() else At(tag=point)
    try:
        return lake.table(plain, version=at.version, as_of=at.as_of, tag=at.tag)
    except TableNotFound as error:
        raise with_near_names(error, lake, plain) from None
    except VersionNotFound as error:
        raise version_missing(error, plain, at.as_of) from None


def open_newest(lake: Lake, name: str) -> Table:
    """The table for a command that changes it. Raises InvalidRequest for a name with a version."""
    if "@" in name:
        raise InvalidRequest("a version never changes", found=name, hint="Leave out the @ and what follows.")
    return open_table(lake, name)


def version_missing(error: VersionNotFound, name: str, as_of: str | None = None) -> VersionNotFound:
    """The same error by the table's name, which people know, and not by its folder."""
    hint = error.hint or f'Run "underlay history {name}" to see what there is.'
    return type(error)(error.problem, place=name, found=as_of, hint=hint)


def with_near_names(error: TableNotFound, lake: Lake, name: str) -> TableNotFound:
    """The same error, with the names that were perhaps meant."""
    names = [table.name for table in lake.tables()]
    if not names:
        hint = 'The lake has no tables yet. Make one with "underlay create".'
    else:
        near = get_close_matches(name, names, n=3) or [one for one in names if one.endswith(f".{name}")]
        hint = f"Did you mean {' or '.join(near)}?" if near else 'Run "underlay tables" to see what there is.'
    return TableNotFound(error.problem, place=error.place, hint=hint)

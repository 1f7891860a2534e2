"""Opens the table, and the version of it, that a command works on."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.cli.common.lake_choice import open_lake
from underlay.errors import InvalidRequest, TableNotFound, VersionNotFound


def chosen_table(
    url: str | None,
    options: Sequence[str] | None,
    name: str,
    *,
    version: int | None = None,
    as_of: str | None = None,
    tag: str | None = None,
) -> Table:
    """The table that a command reads, by its options. `name@7` names a version, `name@audit` a tag.

    Raises InvalidRequest, TableNotFound, VersionNotFound, NotFound.
    """
    lake = open_lake(url, options)
    plain, separator, point = name.partition("@")
    if sum(choice is not None for choice in (version, as_of, tag)) + bool(separator) > 1:
        raise InvalidRequest("more than one version was given", hint="Give one of @, --version, --as-of and --tag.")
    if separator and point.isascii() and point.isdigit():
        version = int(point)
    elif separator:
        tag = point
    try:
        return lake.table(plain, version=version, as_of=as_of, tag=tag)
    except TableNotFound as error:
        raise with_near_names(error, lake, plain) from None
    except VersionNotFound as error:
        raise version_missing(error, plain, as_of) from None


def newest_table(url: str | None, options: Sequence[str] | None, name: str) -> Table:
    """The table that a command changes. Raises InvalidRequest for a name with a version, and TableNotFound."""
    return open_newest(open_lake(url, options), name)


def open_newest(lake: Lake, name: str) -> Table:
    """The same, in an open lake."""
    if "@" in name:
        raise InvalidRequest("a version never changes", found=name, hint="Leave out the @ and what follows.")
    try:
        return lake.table(name)
    except TableNotFound as error:
        raise with_near_names(error, lake, name) from None


def version_missing(error: VersionNotFound, name: str, as_of: str | None = None) -> VersionNotFound:
    """The same error, with the table's name, which people know, instead of its folder."""
    hint = error.hint or f'Run "underlay history {name}" to see what there is.'
    return type(error)(error.problem, place=name, found=as_of, hint=hint)


def with_near_names(error: TableNotFound, lake: Lake, name: str) -> TableNotFound:
    """The same error, with similar names that may have been meant."""
    names = [table.name for table in lake.tables()]
    if not names:
        hint = 'The lake has no tables yet. Create one with "underlay create".'
    else:
        near = get_close_matches(name, names, n=3) or [one for one in names if one.endswith(f".{name}")]
        hint = f"Did you mean {' or '.join(near)}?" if near else 'Run "underlay tables" to see what there is.'
    return TableNotFound(error.problem, place=error.place, hint=hint)

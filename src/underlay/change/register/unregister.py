"""Removes registered files from a table. The files themselves stay in place, if they still exist."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike

from underlay.change.register.find_files import absolute_path, path_text, translate
from underlay.errors import InvalidRequest, NotFound
from underlay.index.keys import is_own
from underlay.index.operation import Operation
from underlay.index.state import count_rows
from underlay.scan.read.file_stores import LOCAL, FileStores, ObjectPlace
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import OpenTable
from underlay.table.versions.snapshot import Snapshot

_MAGIC = re.compile(r"[*?\[]")
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Unregistered:
    """The result of removing registered files."""

    version: int
    file_count: int
    row_count: int


def unregister(table: OpenTable, patterns: Sequence[str | PathLike[str]], stores: FileStores) -> Unregistered:
    """Remove registered files from the table in one commit: paths, folders, URLs and patterns, as for `register`.

    Patterns are matched with the files of the table, whether they still exist or not; no file is read or deleted.
    Raises NotFound for one that matches none, InvalidRequest for files that Underlay wrote.
    """
    if not patterns:
        raise InvalidRequest("no files to unregister")
    wanted = _matchers(patterns, stores)
    rows = 0

    def prepare(transaction: Transaction) -> None:
        nonlocal rows
        chosen = _chosen(transaction.snapshot, wanted, stores)
        rows = sum(_row_counts(transaction.snapshot, chosen))
        for location in chosen:
            transaction.remove_file(location)

    done = commit_change(table, Operation.UNREGISTER, prepare)
    return Unregistered(version=done.version, file_count=done.head.root.counts.get("files_removed", 0), row_count=rows)


def registered_files(snapshot: Snapshot, patterns: Sequence[str | PathLike[str]], stores: FileStores) -> list[str]:
    """The locations of registered files that these paths, folders, URLs and patterns name. Raises as `unregister`."""
    return _chosen(snapshot, _matchers(patterns, stores), stores)


Matcher = Callable[[str], object]


def _matchers(patterns: Sequence[str | PathLike[str]], stores: FileStores) -> list[tuple[str, Matcher]]:
    return [(text, _matcher(text, stores)) for text in map(path_text, patterns)]


def _matcher(pattern: str, stores: FileStores) -> Matcher:
    """The test whether a pattern means an object's address. Links in a local pattern are resolved to real paths."""
    scheme, path = absolute_path(pattern)
    if scheme != LOCAL:
        place = stores.locate_path(scheme, path)
        return _matches(f"{place.store.url}/{place.key}")
    special = None if os.path.lexists(path) else _MAGIC.search(path)
    folder = path if special is None else path[: special.start()].rpartition("/")[0]
    real = os.path.realpath(folder) + path[len(folder.rstrip("/")) :]
    matchers = [_matches(one, is_plain=special is None) for one in dict.fromkeys((path, real))]
    return lambda address: any(matches(address) for matches in matchers)


def _matches(path: str, *, is_plain: bool = False) -> Matcher:
    if not is_plain and _MAGIC.search(path):
        return translate(path).fullmatch
    folder = path.rstrip("/")
    return lambda address: address == folder or address.startswith(f"{folder}/")


def _chosen(snapshot: Snapshot, wanted: Sequence[tuple[str, Matcher]], stores: FileStores) -> list[str]:
    addresses = {location: _address(stores.locate(snapshot.keys, location)) for location in _locations(snapshot)}
    chosen: dict[str, None] = {}
    for pattern, matches in wanted:
        found = [location for location, address in addresses.items() if matches(address)]
        if not found:
            raise NotFound(
                "no registered file of the table matches",
                place=pattern,
                hint="Give its path or URL, or a pattern with *, ?, [ab] and **.",
            )
        chosen |= dict.fromkeys(found)
    ours = [location for location in chosen if is_own(location)]
    if ours:
        raise InvalidRequest(
            f"{len(ours)} of the files were written by Underlay, not registered",
            found=", ".join(ours[:_SHOWN]),
            hint="Delete rows instead.",
        )
    return list(chosen)


def _address(place: ObjectPlace) -> str:
    """The address that patterns are matched with: the real path of a local file, the URL of any other."""
    url = place.store.url
    if not url.startswith(f"{LOCAL}://"):
        return f"{url}/{place.key}"
    return f"{_real_root(url)}/{place.key}"


@lru_cache(maxsize=64)
def _real_root(url: str) -> str:
    return os.path.realpath(absolute_path(url)[1]).rstrip("/")


def _locations(snapshot: Snapshot) -> Iterator[str]:
    gone = set(snapshot.root.removed)
    for segment in snapshot.segments:
        yield from (name for name in map(str, segment.locations.to_pylist()) if name not in gone)
    yield from (file.location for file in snapshot.root.tail)


def _row_counts(snapshot: Snapshot, locations: Sequence[str]) -> Iterator[int]:
    for entry in snapshot.find_files(locations).values():
        yield count_rows(entry) - entry.deleted_rows

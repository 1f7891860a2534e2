"""Which objects a user means by paths, URLs and patterns.

In a pattern `*` stands for any characters but `/`, `?` for one of them, `[ab]` for one of a set, and `**` for any
folders; a local path that exists is not a pattern. A folder stands for all Parquet files below it; those whose
name, or a folder's name, begins with `_` or `.` are hidden.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from underlay.errors import InvalidRequest, NotFound
from underlay.scan.read.file_stores import LOCAL, FileStores, ObjectPlace
from underlay.store import StoredObject

_MAGIC = re.compile(r"[*?\[]")
_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|.", re.DOTALL)
_PLAIN = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """An object, and its location as the index keeps it. One that was named and not listed has no description."""

    place: ObjectPlace
    location: str
    described: StoredObject | None


def path_text(path: object) -> str:
    """A path, URL or pattern as it was written. Raises InvalidRequest for anything else."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InvalidRequest(
            "a file must be given as a path, URL or pattern",
            found=type(path).__name__,
            hint="Write data/*.parquet, for example.",
        )
    return text


def find_files(patterns: Sequence[str], stores: FileStores) -> list[FoundFile]:
    """The objects of all patterns, each once, in the order of patterns and then of keys.

    Raises NotFound for a pattern without a match. One listing for each pattern, of the folder before its first special
    character.
    """
    files: dict[str, FoundFile] = {}
    for pattern in patterns:
        found = list(_expand(pattern, stores))
        if not found:
            raise NotFound("no file matches", place=pattern, hint="Patterns may have *, ?, [ab] and **.")
        for file in found:
            files.setdefault(file.location, file)
    return list(files.values())


def _expand(pattern: str, stores: FileStores) -> Iterator[FoundFile]:
    scheme, path = _absolute(pattern)
    place = stores.locate_path(scheme, path)
    is_there = scheme == LOCAL and Path(path).exists()
    special = None if is_there else _MAGIC.search(place.key)
    if special is None and not path.endswith("/"):
        yield FoundFile(place=place, location=stores.location(place), described=None)
        return
    is_wanted: Callable[[str], object]
    if special is None:
        folder = place.key.rstrip("/")
        is_wanted = _visible_parquet(folder)
    else:
        folder = place.key[: special.start()].rpartition("/")[0]
        is_wanted = translate(place.key).fullmatch
    for described in place.store.list_objects(folder):
        if is_wanted(described.key):
            here = ObjectPlace(place.store, described.key)
            yield FoundFile(place=here, location=stores.location(here), described=described)


def translate(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern. Raises InvalidRequest for a set such as `[z-a]`."""

    def part(token: str) -> str:
        if token in _PLAIN:
            return _PLAIN[token]
        return _set(token) if len(token) > 1 else re.escape(token)

    try:
        return re.compile("".join(part(token) for token in _TOKENS.findall(pattern)), re.DOTALL)
    except re.error as error:
        raise InvalidRequest(f"invalid pattern: {error}", found=pattern) from None


def _set(token: str) -> str:
    """One character of a set, or with `!` before them none of these; never a `/`."""
    is_negated = token.startswith("[!") and len(token) > 3
    members = "".join(one if one == "-" else re.escape(one) for one in token[1 + is_negated : -1])
    return f"(?!/)[{'^' if is_negated else ''}{members}]"


def _visible_parquet(folder: str) -> Callable[[str], bool]:
    def is_visible(key: str) -> bool:
        parts = key.removeprefix(f"{folder}/").split("/")
        return parts[-1].endswith((".parquet", ".parq")) and not any(part.startswith(("_", ".")) for part in parts)

    return is_visible


def _absolute(pattern: str) -> tuple[str, str]:
    """The scheme and the unquoted path of a URL or of a path on this machine; a folder's ends in `/`."""
    if not pattern:
        raise InvalidRequest("the path is empty")
    scheme, separator, rest = pattern.partition("://")
    if separator and scheme != LOCAL:
        return scheme, rest
    path = Path("/", unquote(rest).lstrip("/")) if separator else Path(pattern).expanduser()
    absolute = path if path.is_absolute() else Path.cwd() / path
    is_folder = pattern.endswith("/") or absolute.is_dir()
    return LOCAL, f"{absolute}/" if is_folder else str(absolute)

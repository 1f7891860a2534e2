"""Finds the objects that a user means by paths, URLs and patterns.

In a pattern `*` stands for any characters but `/`, `?` for one of them, `[ab]` for one of a set, and `**` for any
folders; a local path that exists is not a pattern. A folder stands for all Parquet files below it; those whose name, or
a folder's name, begins with `_` or `.` are hidden. Local paths may have `..` and symbolic links as usual, and a local
file is identified by its real path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from underlay.errors import InvalidRequest, NotFound, from_os_error
from underlay.scan.read.file_stores import LOCAL, FileStores, ObjectPlace

_MAGIC = re.compile(r"[*?\[]")
_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|.", re.DOTALL)
_PLAIN = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """An object, its location as the index keeps it, and the path by which it was found."""

    place: ObjectPlace
    location: str
    path: str


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
    """The objects of all patterns, each once, ordered by pattern and then by key.

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
    scheme, path = absolute_path(pattern)
    if scheme == LOCAL:
        yield from _expand_local(path, stores)
        return
    place = stores.locate_path(scheme, path)
    special = _MAGIC.search(place.key)
    if special is None and not path.endswith("/"):
        yield FoundFile(place=place, location=stores.location(place), path=place.key)
        return
    folder, is_wanted = _folder_of(place.key, special)
    for described in place.store.list_objects(folder):
        if is_wanted(described.key):
            here = ObjectPlace(place.store, described.key)
            yield FoundFile(place=here, location=stores.location(here), path=described.key)


def _folder_of(path: str, special: re.Match[str] | None) -> tuple[str, Callable[[str], object]]:
    """The folder to list, and which of the paths below it are meant."""
    if special is None:
        folder = path.rstrip("/")
        return folder, _visible_parquet(folder)
    return path[: special.start()].rpartition("/")[0], translate(path).fullmatch


def _expand_local(path: str, stores: FileStores) -> Iterator[FoundFile]:
    """Local files by their real paths, whatever links lead to them."""
    special = None if os.path.lexists(path) else _MAGIC.search(path)
    if special is None and not path.endswith("/"):
        yield _local_file(path, os.path.realpath(path), stores)
        return
    folder, is_wanted = _folder_of(path, special)
    depth = path[len(folder) + 1 :].count("/") if special is not None and "**" not in path else None
    for shown, real in _walk(folder, os.path.realpath(folder or "/"), depth, ()):
        if is_wanted(shown):
            yield _local_file(shown, real, stores)


def _walk(shown: str, real: str, depth: int | None, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The files below a folder, down to this depth, in order of their names; links are followed.

    Each with the path that led to it and its real path. A folder that links to one of those above it is left out.
    """
    for name, is_folder, target in sorted(_entries(real)):
        here = f"{shown}/{name.removesuffix('/')}"
        if not is_folder:
            yield here, target
        elif depth != 0 and target not in (real, *above):
            yield from _walk(here, target, None if depth is None else depth - 1, (real, *above))


def _entries(folder: str) -> Iterator[tuple[str, bool, str]]:
    """Files and folders: the name, with a `/` for a folder, and the real path."""
    try:
        with os.scandir(folder) as found:
            for entry in found:
                target = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
                if entry.is_dir():
                    yield f"{entry.name}/", True, target
                elif entry.is_file():
                    yield entry.name, False, target
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise from_os_error(error, folder) from None


def _local_file(shown: str, real: str, stores: FileStores) -> FoundFile:
    lake = stores.local_root
    is_in_lake = lake is not None and real.startswith(f"{lake}/")
    place = ObjectPlace(stores.lake, real[len(lake or "") + 1 :]) if is_in_lake else stores.locate_path(LOCAL, real)
    # A link's name may tell what it holds, so its path counts; `..` after a link leads elsewhere than it seems to.
    path = real if ".." in shown.split("/") else shown
    return FoundFile(place=place, location=stores.location(place), path=path)


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
    """One character of a set, or after `!` any character outside it; never a `/`."""
    is_negated = token.startswith("[!") and len(token) > 3
    members = "".join(one if one == "-" else re.escape(one) for one in token[1 + is_negated : -1])
    return f"(?!/)[{'^' if is_negated else ''}{members}]"


def _visible_parquet(folder: str) -> Callable[[str], bool]:
    def is_visible(key: str) -> bool:
        parts = key.removeprefix(f"{folder}/").split("/")
        return parts[-1].endswith((".parquet", ".parq")) and not any(part.startswith(("_", ".")) for part in parts)

    return is_visible


def absolute_path(pattern: str) -> tuple[str, str]:
    """The scheme and the unquoted path of a URL or local path; a folder's ends in `/`."""
    if not pattern:
        raise InvalidRequest("the path is empty")
    scheme, separator, rest = pattern.partition("://")
    if separator and scheme != LOCAL:
        return scheme, rest
    path = Path("/", unquote(rest).lstrip("/")) if separator else Path(pattern).expanduser()
    absolute = path if path.is_absolute() else Path.cwd() / path
    is_folder = pattern.endswith("/") or absolute.is_dir()
    return LOCAL, f"{absolute}/" if is_folder else str(absolute)

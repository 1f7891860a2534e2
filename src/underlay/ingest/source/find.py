"""Finds sources: the objects that paths, URLs and patterns name, each with its uri and what identifies its content.

In a pattern `*` stands for any characters but `/`, `?` for one of them, `[ab]` for one of a set, and `**` for any
folders; a path that exists on this machine is not a pattern. A name that ends in `/` means a folder, with all objects
below it. Objects whose name, or folder's name, begins with `_` or `.` are hidden from `*` and from folders, unless the
pattern itself has a part that begins like that.

Symbolic links to files are followed but not resolved, so a file with two names is two sources; linked folders are not
entered. `s3a://` is `s3://`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote_from_bytes, unquote_to_bytes

from underlay.change.register.find_files import translate
from underlay.errors import InvalidRequest, NotFound, Unsupported, from_os_error
from underlay.ingest.source.source import LOCAL, Source, bucket_of, local_identity, store_of
from underlay.store.open import Option
from underlay.store.store import Store, StoredObject

STDIN = "-"
_MAGIC = re.compile(r"[*?\[]")
_HIDDEN = ("_", ".")
_SAME_SCHEME = {"s3a": "s3"}
"""Aliases of schemes."""


def find_sources(
    patterns: Sequence[str],
    options: Mapping[str, Option] | None = None,
    *,
    whole_folders: bool = False,
    may_be_none: bool = False,
) -> list[Source]:
    """The objects of all patterns, each once, ascending by uri. `options` are those of the stores of remote patterns.

    With `whole_folders`, a folder needs no `/` at the end. Raises NotFound for a pattern without a match unless
    `may_be_none`, InvalidRequest for a folder. One listing for each remote pattern, with the part before its first
    special character as the prefix; one request for a plain name.
    """
    found: dict[str, Source] = {}
    for pattern in patterns:
        matches = list(_expand(pattern, options, whole_folders=whole_folders))
        if not matches and not may_be_none:
            raise NotFound("no source matches", place=pattern, hint="Patterns may have *, ?, [ab] and **.")
        found |= {one.uri: one for one in matches}
    return [found[uri] for uri in sorted(found)]


def source_options(
    patterns: Iterable[str], given: Mapping[str, Option], lake_url: str, lake_options: Mapping[str, Option]
) -> Mapping[str, Option]:
    """The options for sources' stores: those given, else the lake's if all remote sources have its scheme."""
    own = lake_url.partition("://")[0]
    schemes = {scheme for pattern in patterns if (scheme := _scheme(pattern)) is not None}
    return lake_options if not given and schemes == {own} else given


def _scheme(pattern: str) -> str | None:
    """The scheme of a remote source; None for a path."""
    scheme, separator, _ = pattern.partition("://")
    return _SAME_SCHEME.get(scheme, scheme) if separator and scheme != LOCAL else None


def _expand(pattern: str, options: Mapping[str, Option] | None, *, whole_folders: bool) -> Iterator[Source]:
    if not pattern:
        raise InvalidRequest("a source cannot be an empty path")
    if pattern == STDIN:
        raise InvalidRequest(
            "stdin has neither a name nor content to recognise it by, so it cannot be ingested exactly once",
            hint='Append it: "… | underlay append DATASET.TABLE -" (with --token, once). A file of this name is ./-.',
        )
    if pattern.endswith("/") and _MAGIC.search(pattern):
        pattern += "**"
    scheme, separator, rest = pattern.partition("://")
    if pattern.startswith(f"{LOCAL}:/"):
        return _expand_local(_path_of(pattern), whole_folders=whole_folders)
    if not separator:
        return _expand_local(os.path.expanduser(pattern), whole_folders=whole_folders)
    return _expand_remote(f"{_SAME_SCHEME.get(scheme, scheme)}://{rest}", options, whole_folders=whole_folders)


def _path_of(url: str) -> str:
    """The path of `file:///path`, or of `file:/path` as Hadoop writes it."""
    path = url.removeprefix(f"{LOCAL}:").removeprefix("//localhost")
    if path.startswith("//") and not path.startswith("///"):
        raise InvalidRequest("a file URL must name a path on this machine", found=url, expected="file:///path")
    return os.fsdecode(unquote_to_bytes(path))


def _expand_local(pattern: str, *, whole_folders: bool) -> Iterator[Source]:
    path = f"/{os.path.abspath(pattern).lstrip('/')}"
    is_folder = os.path.isdir(path)
    if is_folder and not (pattern.endswith("/") or whole_folders):
        raise _is_folder(pattern)
    if is_folder:
        yield from _described(_visible(_walk(path, None), path, ""))
    elif os.path.lexists(path) or _MAGIC.search(path) is None:
        yield _describe(path)
    else:
        folder, rest = _split(path)
        depth = None if "**" in rest else rest.count("/")
        wanted = translate(path)
        names = (name for name in _walk(folder or "/", depth) if wanted.fullmatch(name))
        yield from _described(_visible(names, folder, rest))


def _walk(folder: str, depth: int | None) -> Iterator[str]:
    """The files in a folder and its subfolders, down to this depth."""
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        below = 0 if parent == folder else os.path.relpath(parent, folder).count("/") + 1
        if depth is not None and below >= depth:
            folders.clear()
        yield from (os.path.join(parent, name) for name in names)


def _refuse(error: OSError) -> None:
    """Raise for a folder that cannot be read; a missing folder counts as empty."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise from_os_error(error, str(error.filename)) from None


def _described(paths: Iterable[str]) -> Iterator[Source]:
    """The files that exist and are regular."""
    for path in paths:
        try:
            status = os.stat(path)
        except FileNotFoundError:  # it is gone, or a dangling link
            continue
        except OSError as error:
            raise from_os_error(error, path) from None
        if stat.S_ISREG(status.st_mode):
            yield _found(path, status)


def _describe(path: str) -> Source:
    try:
        status = os.stat(path)
    except OSError as error:
        raise from_os_error(error, path) from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidRequest("is not a regular file", place=path)
    return _found(path, status)


def _found(path: str, status: os.stat_result) -> Source:
    return Source(f"{LOCAL}://{quote_from_bytes(os.fsencode(path))}", local_identity(status), status.st_size)


def _expand_remote(url: str, options: Mapping[str, Option] | None, *, whole_folders: bool) -> Iterator[Source]:
    root, _ = bucket_of(url)
    store, key = store_of(url, options)
    special = _MAGIC.search(key)
    if special is not None:
        folder, rest = _split(key)
        begins = rest[: special.start() - len(key) + len(rest)]
        wanted = translate(key)
        keys = {found.key: found for found in list_beginning(store, folder, begins) if wanted.fullmatch(found.key)}
    elif not key or key.endswith("/"):
        folder, rest = key.rstrip("/"), ""
        keys = {found.key: found for found in store.list_objects(folder)}
    else:
        yield from _named(store, root, key, whole_folders=whole_folders)
        return
    yield from (_remote(root, keys[name]) for name in _visible(keys, folder, rest))


def _named(store: Store, root: str, key: str, *, whole_folders: bool) -> Iterator[Source]:
    """The object with this name, or all objects below a folder of that name."""
    described = store.head(key)
    if described is not None:
        yield _remote(root, described)
        return
    below = {found.key: found for found in store.list_objects(key)} if whole_folders else {}
    if not whole_folders and next(iter(store.list_objects(key)), None) is not None:
        raise _is_folder(f"{root}/{key}")
    if not below:
        raise NotFound("no such object", place=f"{root}/{key}")
    yield from (_remote(root, below[name]) for name in _visible(below, key, ""))


def list_beginning(store: Store, folder: str, begins: str) -> Iterator[StoredObject]:
    """The objects below a folder whose remaining key has this prefix. Lists only few others."""
    prefix = f"{folder}/" if folder else ""
    # One character less: some stores sort a folder by its name alone, and would leave out a folder with exactly this
    # name.
    after = f"{prefix}{begins[:-1]}" if len(begins) > 1 else None
    for found in store.list_objects(folder, after=after):
        name = found.key[len(prefix) :]
        if name.startswith(begins):
            yield found
        elif name[: len(begins)] > begins:
            return


def _remote(root: str, described: StoredObject) -> Source:
    uri = f"{root}/{described.key}"
    if described.etag is None:
        raise Unsupported("the store gives the object no etag, so changes could go unnoticed", place=uri)
    return Source(uri, described.etag, described.size_bytes)


def _split(pattern: str) -> tuple[str, str]:
    """The folder before the first special character, and the rest."""
    special = _MAGIC.search(pattern)
    folder = pattern[: special.start() if special else None].rpartition("/")[0]
    return folder, pattern[len(folder) + 1 :] if folder or pattern.startswith("/") else pattern


def _visible(names: Iterable[str], folder: str, pattern: str) -> Iterator[str]:
    """The names below `folder` that the rest of the pattern does not hide."""
    asked = tuple({part[0] for part in pattern.split("/") if part.startswith(_HIDDEN)})
    hidden = tuple(set(_HIDDEN).difference(asked))
    begin = len(folder.rstrip("/")) + 1 if folder.rstrip("/") or pattern.startswith("/") else 0
    for name in names:
        parts = name[begin:].lstrip("/").split("/")
        if not hidden or not any(part.startswith(hidden) for part in parts):
            yield name


def _is_folder(name: str) -> InvalidRequest:
    return InvalidRequest(
        "is a folder, not a file", place=name, hint=f"Write {name.rstrip('/')}/ for all files below it."
    )

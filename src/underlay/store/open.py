"""Opens the store at a URL.

    data/lake, ~/lake, /srv/lake, file:///lake    a local directory
    s3://bucket/path, s3a://…                     S3 and compatible stores (option `endpoint`)
    gs://bucket/path                              Google Cloud Storage
    az://container/path, abfs[s]://…              Azure Blob Storage
    memory://name                                 this process's memory; the same name is the same store

Credentials come from the options, else from the variables that these platforms' own tools read (AWS_*, GOOGLE_*,
AZURE_*), else from the files that these tools keep (see `defaults`), else from the machine's identity service. They are
never part of the URL, and a URL that holds some is refused. Paths of file:// are quoted, `%20` for a space; all others
are keys as they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from underlay.errors import InvalidRequest
from underlay.runtime.posix import need_posix
from underlay.store.store import Store

Option = str | bool | int
"""The value of an option."""

_SECRET_PARTS = ("key", "secret", "token", "password", "credential", "sas", "auth", "bearer")


def is_secret(name: str, value: object = "") -> bool:
    """Whether an option may be a credential: by its name, or as a URL that has a user in it."""
    return any(part in name.lower() for part in _SECRET_PARTS) or "@" in str(value)


class SecretText(str):
    """Text to use like any other, but neither its own `repr` nor that of an object that holds it shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class StoreOptions(dict[str, str]):
    """Options of a store, to keep. Neither their `repr` nor that of a copy shows what may be a credential."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(
            (name, SecretText(value) if isinstance(value, str) and is_secret(name, value) else value)
            for name, value in options.items()
        )

    def __repr__(self) -> str:
        return f"StoreOptions({dict(self)!r})"


def open_store(url: str | os.PathLike[str], options: Mapping[str, Option] | None = None) -> Store:
    """The store at `url`. Makes no request and no directory. InvalidRequest when URL or options are not understood."""
    text = os.fspath(url)
    scheme, separator, _ = text.partition("://")
    if not separator:
        _refuse_options(options, text)
        return _open_local(os.path.expanduser(text))
    if scheme == "file":
        _refuse_options(options, text)
        return _open_local(_path_of(text))
    from underlay.store.bucket import open_remote  # loads obstore, which a local disk does without

    return open_remote(text, options or {})


def _open_local(path: str) -> Store:
    need_posix("lakes and files on a local disk")
    from underlay.store.local import LocalStore  # after the check: its modules need POSIX

    return LocalStore(path)


def _refuse_options(options: Mapping[str, Option] | None, url: str) -> None:
    if options:
        raise InvalidRequest(f"this store has no options: {', '.join(sorted(options))}", place=url)


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or not parts.path:
        raise InvalidRequest("a file URL names a path on this machine", place=url, expected="file:///path")
    return unquote(parts.path)

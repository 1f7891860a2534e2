"""Chooses where a lake's registry is, if nobody names a place.

    file:///srv/lake                      /srv/lake/_registry/registry.sqlite
    s3://bucket/lake, gs://…, az://…      ~/.local/state/underlay/s3-bucket-lake-0123456789abcdef.sqlite
    memory://name                         nowhere

A SQLite URL is `sqlite:///` and a literal path without escapes, so that it can name any folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import xxhash

from underlay.errors import InvalidRequest

VARIABLE = "UNDERLAY_REGISTRY"
"""The environment variable that names the registry."""

ACCEPTED = "sqlite:///path, postgresql://user@host/database, or none"

LAKE_FOLDER = "_registry"
"""The registry's folder in a local lake."""
_SQLITE = "sqlite:///"
_SERVER_SCHEMES = ("postgresql://", "postgres://", "postgresql+psycopg://")
_SCHEMES = (_SQLITE, *_SERVER_SCHEMES)
_SAME_SCHEME = {"s3a": "s3", "abfss": "abfs"}
"""Aliases of schemes."""
_READABLE_LENGTH = 48


def choose_url(chosen: str | None, store_url: str, environment: Mapping[str, str], home: Path) -> str | None:
    """`chosen`, else the URL in the environment, else the default; None for no registry.

    InvalidRequest when the chosen text is not a URL.
    """
    wanted = chosen or environment.get(VARIABLE)
    if not wanted:
        return default_url(store_url, environment, home)
    if wanted.lower() == "none":
        return None
    if "://" not in wanted:
        # Not repeated in the message: a text without a scheme may be a libpq string with a password.
        raise InvalidRequest(
            "the registry must be given as a URL",
            place=None if chosen else VARIABLE,
            expected=ACCEPTED,
            hint="For a SQLite file write sqlite:/// before its path: sqlite:///registry.sqlite is in this folder, "
            "sqlite:////srv/registry.sqlite is absolute.",
        )
    if not wanted.startswith(_SCHEMES):
        raise InvalidRequest("this is not the URL of a registry", place=None if chosen else VARIABLE, expected=ACCEPTED)
    return wanted


def is_server(url: str) -> bool:
    """Whether the URL names a database that other machines can use too."""
    return url.startswith(_SERVER_SCHEMES)


def sqlite_folder(url: str) -> Path | None:
    """The folder of a SQLite registry's file; None for a server."""
    return None if is_server(url) else Path(url.removeprefix(_SQLITE)).absolute().parent


def lake_folder(store_url: str) -> Path | None:
    """The folder of a local lake; None for any other."""
    parts = urlsplit(store_url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def default_url(store_url: str, environment: Mapping[str, str], home: Path) -> str | None:
    """Beside a local lake, else in the user's state folder; None for a lake in memory."""
    if store_url.startswith("memory://"):
        return None
    folder = lake_folder(store_url)
    if folder is not None:
        return f"{_SQLITE}{folder / LAKE_FOLDER / 'registry.sqlite'}"
    return f"{_SQLITE}{_state_folder(environment, home) / 'underlay' / _name_of(store_url)}"


def _state_folder(environment: Mapping[str, str], home: Path) -> Path:
    """The user's state folder. The XDG specification says to ignore a relative path."""
    named = Path(environment.get("XDG_STATE_HOME", ""))
    return named if named.is_absolute() else home / ".local" / "state"


def _name_of(store_url: str) -> str:
    """A recognisable file name, unique to this lake. `s3a://` counts as `s3://`."""
    scheme, separator, rest = store_url.rstrip("/").partition("://")
    url = f"{_SAME_SCHEME.get(scheme, scheme)}{separator}{rest}"
    readable = re.sub(r"[^A-Za-z0-9]+", "-", url).strip("-")[:_READABLE_LENGTH]
    return f"{readable}-{xxhash.xxh3_64_hexdigest(url.encode())}.sqlite"

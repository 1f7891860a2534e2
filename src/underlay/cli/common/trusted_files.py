"""Remembers which underlay.toml files the user confirmed. Such a file is found, not given: it may come with a cloned
repository.

~/.config/underlay/trusted.json, or below XDG_CONFIG_HOME: path of the file → SHA-256 of its content. A file that
changes must be confirmed again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from underlay.errors import InvalidRequest, NotFound
from underlay.runtime.own_files import read_small_file, write_own_file

_HARMLESS = {
    "connect_timeout",
    "default_region",
    "max_retries",
    "profile",
    "read_timeout",
    "region",
    "aws_default_region",
    "aws_region",
    "timeout",
    "virtual_hosted_style_request",
}
"""Options that affect neither where requests go nor what is sent with them."""
_SERVER = "postgres"


def destinations(url: str, registry: str | None, options: Mapping[str, str]) -> list[str]:
    """The settings that decide where, or how, credentials from the environment are sent, without values that may be
    secrets. A bucket alone is not one of them: its requests go to the cloud provider.
    """
    found = [f"option {name}" for name in sorted(options) if name not in _HARMLESS] if "://" in url else []
    if registry is not None and registry.startswith(_SERVER):
        host = registry.partition("://")[2].rpartition("@")[2].partition("/")[0]
        found.append(f"registry at {host.partition('?')[0] or 'a server'}")
    return found


def is_trusted(path: Path, data: bytes) -> bool:
    """Whether the user confirmed the file with its current content."""
    return _recorded().get(_name(path)) == _digest(data)


def trust(path: Path, data: bytes) -> None:
    """Remember that the user confirmed the file with this content."""
    _write(_recorded() | {_name(path): _digest(data)})


def forget(path: Path) -> bool:
    """Forget that the user confirmed the file. Returns whether it was known."""
    known = _recorded()
    _write({name: digest for name, digest in known.items() if name != _name(path)})
    return _name(path) in known


def store_path() -> Path:
    """The file that remembers confirmations. Its specification says to ignore a relative XDG_CONFIG_HOME."""
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".config") / "underlay" / "trusted.json"


def _recorded() -> dict[str, str]:
    path = store_path()
    try:
        data, problem = read_small_file(path)
    except NotFound:
        return {}
    if problem is not None:
        raise InvalidRequest(
            f"the list of trusted files is not used, since others may have written it: {problem}",
            place=str(path),
            hint="Check what is in it and remove that permission (chmod go-w), or delete the file.",
        )
    try:
        return msgspec.json.decode(data, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"the list of trusted files cannot be read: {error}",
            place=str(path),
            hint='Delete it, and run "underlay trust" again where you need it.',
        ) from None


def _write(known: Mapping[str, str]) -> None:
    write_own_file(store_path(), msgspec.json.format(msgspec.json.encode(known)) + b"\n")


def _name(path: Path) -> str:
    return str(path.resolve())


def _digest(data: bytes) -> str:
    from hashlib import sha256  # OpenSSL, which few commands need

    return sha256(data).hexdigest()

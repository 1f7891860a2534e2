"""Finds the lake that a command works on: `--lake`, else UNDERLAY_LAKE, else the nearest underlay.toml upward.

lake = "data/lake"                # relative to the file, or a URL
registry = "sqlite:///r.sqlite"   # relative to the file; or postgresql://…, or none. UNDERLAY_REGISTRY overrides it
hot = "data/hot"                  # hot partitions, relative to the file. UNDERLAY_HOT overrides it

[options]                         # of the store
endpoint = "http://localhost:9000"

The search ends at the home folder and at the root of a repository. A file that others may have written is refused, and
so is one that names an endpoint or a database server, until the user confirms it with `underlay trust`: credentials
from the environment would be sent there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from underlay.cli.common.trusted_files import destinations, is_trusted
from underlay.errors import InvalidRequest, NotFound
from underlay.runtime.own_files import read_small_file

if TYPE_CHECKING:
    from underlay.api.lake import Lake
    from underlay.registry.registry import Registry

CONFIG_NAME = "underlay.toml"
REPOSITORY = ".git"
"""A folder that contains this is the root of a repository."""
VARIABLE = "UNDERLAY_LAKE"
REGISTRY_VARIABLE = "UNDERLAY_REGISTRY"
HOT_VARIABLE = "UNDERLAY_HOT"
_KNOWN = ("lake", "registry", "hot", "options")
_SQLITE = "sqlite:///"
_opened: list[Registry] = []
_lakes: list[Lake] = []
"""The lakes that this command opened; `_opened` has their registries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeChoice:
    """A lake's location, the options of its store, and its registry; None leaves the registry to the environment or
    to the location. `config` is the file that they came from, if any."""

    url: str
    options: Mapping[str, str] = field(repr=False)
    registry: str | None = field(default=None, repr=False)
    config: Path | None = None
    hot: str | None = None
    """The directory of hot partitions; None leaves it to the environment."""


def choose_lake(url: str | None, options: Sequence[str] | None) -> LakeChoice:
    """The lake that options, environment or files name. Raises NotFound if none does."""
    given = split_pairs(options, "--option")
    named = url or os.environ.get(VARIABLE)
    if named:
        return LakeChoice(url=named, options=given)
    config = find_config(Path.cwd())
    if config is None:
        raise NotFound(
            "no lake was given",
            hint=f'Give --lake, set {VARIABLE}, or run "underlay init DIRECTORY", which writes an {CONFIG_NAME}.',
        )
    known = read_found(config)
    registry = None if os.environ.get(REGISTRY_VARIABLE) else known.registry
    hot = None if os.environ.get(HOT_VARIABLE) else known.hot
    return LakeChoice(url=known.url, options={**known.options, **given}, registry=registry, config=config, hot=hot)


def open_lake(url: str | None, options: Sequence[str] | None) -> Lake:
    """The lake of a command. Makes no request."""
    return connect_chosen(choose_lake(url, options))


def connect_chosen(choice: LakeChoice) -> Lake:
    """The lake of a choice. Makes no request."""
    from underlay.api.lake import connect  # loads Arrow

    lake = connect(choice.url, options=choice.options or None, registry=choice.registry, hot=choice.hot)
    _lakes.append(lake)
    if lake.registry is not None:
        _opened.append(lake.registry)
    return lake


def finish_registries(timeout_seconds: float) -> None:
    """Wait until background care of tables reaches a point where it can stop; then until the registries of the opened
    lakes have what this command wrote, if they answer.
    """
    while _lakes:
        _lakes.pop().end_care()
    while _opened:
        _opened.pop().finish(timeout_seconds)


def open_existing_lake(url: str | None, options: Sequence[str] | None) -> Lake:
    """The same, for commands that would not notice a missing lake. One request. Raises NotFound."""
    return _existing(connect_chosen(choose_lake(url, options)))


def open_to_read(url: str | None, options: Sequence[str] | None, *, is_listing: bool = False) -> Lake:
    """The same, for commands that only read. The registry is not used where it saves no request: for a listing, and for
    a lake on a local disk.
    """
    choice = choose_lake(url, options)
    is_local = "://" not in choice.url or choice.url.startswith("file:")
    registry = choice.registry or os.environ.get(REGISTRY_VARIABLE)
    is_url = not registry or registry.lower().startswith(
        ("none", "sqlite:///", "postgres")
    )  # else an error, whether it is used or not
    is_left_out = is_url and (is_listing or is_local)
    return _existing(connect_chosen(replace(choice, registry="none") if is_left_out else choice))


def _existing(lake: Lake) -> Lake:
    if not lake.exists():
        raise NotFound("there is no lake here", place=show_place(lake.url), hint='Create one with "underlay init".')
    return lake


def find_config(folder: Path) -> Path | None:
    """The nearest underlay.toml, in this folder or above it, but not above the home folder or a repository."""
    home = Path.home()
    for up in (folder, *folder.parents):
        if (up / CONFIG_NAME).is_file():
            return up / CONFIG_NAME
        if up == home or (up / REPOSITORY).exists():
            return None
    return None


def read_found(path: Path) -> LakeChoice:
    """Read a configuration file that the user did not name. Also raises InvalidRequest if somebody else may have
    written it, or it names where to send credentials, unless the user has confirmed it.
    """
    data, problem = read_small_file(path)
    choice = _parsed(path, data)
    registry = None if os.environ.get(REGISTRY_VARIABLE) else choice.registry
    named = destinations(choice.url, registry, choice.options)
    if (problem is None and not named) or is_trusted(path, data):
        return choice
    confirm = f'run "underlay trust {path}" to confirm it as it is, or give --lake and --option yourself.'
    if problem is not None:
        raise InvalidRequest(
            f"the file is not used, since others may have written it: {problem}",
            place=str(path),
            hint=f"Remove that permission (chmod go-w, chown), or check the file and {confirm}",
        )
    raise InvalidRequest(
        "the file says where to send your credentials, and you have not confirmed it",
        place=str(path),
        found=", ".join(named),
        hint=f"Check the file, then {confirm}",
    )


def read_config(path: Path) -> LakeChoice:
    """Read a configuration file. Raises InvalidRequest for unknown settings and for values of the wrong type."""
    return _parsed(path, read_small_file(path)[0])


def _parsed(path: Path, data: bytes) -> LakeChoice:
    import tomllib  # not needed by a command that names its lake

    try:
        content = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the file is not valid TOML: {error}", place=str(path)) from None
    unknown = [name for name in content if name not in _KNOWN]
    if unknown:
        raise InvalidRequest("unknown setting", place=str(path), expected=" or ".join(_KNOWN), found=", ".join(unknown))
    url, registry, options = content.get("lake"), content.get("registry"), content.get("options", {})
    if not isinstance(url, str) or not url:
        raise InvalidRequest("the file does not name a lake", place=str(path), hint='Write lake = "data/lake".')
    if registry is not None and (not isinstance(registry, str) or not registry):
        from underlay.registry.database.location import ACCEPTED

        raise InvalidRequest("registry must be a string", place=str(path), expected=ACCEPTED)
    if not isinstance(options, dict) or not all(isinstance(value, str | int | bool) for value in options.values()):
        raise InvalidRequest("an option must be a single value", place=str(path), hint='Write endpoint = "http://…".')
    hot = content.get("hot")
    if hot is not None and (not isinstance(hot, str) or not hot or "://" in hot):
        raise InvalidRequest("hot must be a directory on this machine", place=str(path), found=repr(hot))
    is_path = "://" not in url
    return LakeChoice(
        url=str(path.parent / Path(url).expanduser()) if is_path else url,
        options={name: _option_text(value) for name, value in options.items()},
        registry=_from_folder(registry, path.parent) if registry is not None else None,
        config=path,
        hot=None if hot is None else str(path.parent / Path(hot).expanduser()),
    )


def split_pairs(pairs: Sequence[str] | None, name: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping. Raises InvalidRequest; errors never show a value, since it may be a secret."""
    found: dict[str, str] = {}
    for number, pair in enumerate(pairs or (), start=1):
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise InvalidRequest(f"{name} takes KEY=VALUE; number {number} has no key or no =")
        if key.strip() in found:
            raise InvalidRequest(f"{name} is given twice for one key", found=key.strip())
        found[key.strip()] = value
    return found


def show_place(url: str) -> str:
    """A lake's URL as people read it: a directory's path without its scheme."""
    return unquote(url.removeprefix("file://")) if url.startswith("file://") else url


def _from_folder(registry: str, folder: Path) -> str:
    """A SQLite file's URL with its path resolved against this folder; any other URL unchanged."""
    path = registry.removeprefix(_SQLITE)
    return f"{_SQLITE}{folder / path}" if path and path != registry else registry


def _option_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

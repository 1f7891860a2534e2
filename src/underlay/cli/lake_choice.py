"""Which lake a command means: `--lake`, else UNDERLAY_LAKE, else the nearest underlay.toml upward.

lake = "data/lake"                # relative to the file, or a URL

[options]                         # of the store
endpoint = "http://localhost:9000"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from underlay.errors import InvalidRequest, NotFound, from_os_error

if TYPE_CHECKING:
    from underlay.api.lake import Lake

CONFIG_NAME = "underlay.toml"
VARIABLE = "UNDERLAY_LAKE"
_KNOWN = ("lake", "options")


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeChoice:
    """A lake's place, and the options of its store. `config` is the file that says so, if one does."""

    url: str
    options: Mapping[str, str]
    config: Path | None = None


def choose_lake(url: str | None, options: Sequence[str] | None) -> LakeChoice:
    """What options, environment and files say. Raises NotFound when nothing names a lake."""
    given = split_pairs(options, "--option")
    named = url or os.environ.get(VARIABLE)
    if named:
        return LakeChoice(url=named, options=given)
    config = find_config(Path.cwd())
    if config is None:
        raise NotFound(
            "no lake is named",
            hint=f'Give --lake, set {VARIABLE}, or run "underlay init DIRECTORY", which writes an {CONFIG_NAME}.',
        )
    known = read_config(config)
    return LakeChoice(url=known.url, options={**known.options, **given}, config=config)


def open_lake(url: str | None, options: Sequence[str] | None) -> Lake:
    """The lake that a command means. Makes no request."""
    from underlay.api.lake import connect  # loads Arrow

    choice = choose_lake(url, options)
    return connect(choice.url, options=choice.options or None)


def open_existing_lake(url: str | None, options: Sequence[str] | None) -> Lake:
    """The same, for a command that would not notice that there is none. One request. Raises NotFound."""
    lake = open_lake(url, options)
    if not lake.exists():
        raise NotFound("there is no lake here", place=show_place(lake.url), hint='Make one with "underlay init".')
    return lake


def find_config(folder: Path) -> Path | None:
    """The nearest underlay.toml, in this folder or above it."""
    return next((path for path in (up / CONFIG_NAME for up in (folder, *folder.parents)) if path.is_file()), None)


def read_config(path: Path) -> LakeChoice:
    """What the file says. Raises InvalidRequest for anything else than a lake and its options."""
    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise from_os_error(error, str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"this is no TOML: {error}", place=str(path)) from None
    unknown = [name for name in content if name not in _KNOWN]
    if unknown:
        raise InvalidRequest(
            "there is no such setting", place=str(path), expected=" or ".join(_KNOWN), found=", ".join(unknown)
        )
    url, options = content.get("lake"), content.get("options", {})
    if not isinstance(url, str) or not url:
        raise InvalidRequest("the file names no lake", place=str(path), hint='Write lake = "data/lake".')
    if not isinstance(options, dict) or not all(isinstance(value, str | int | bool) for value in options.values()):
        raise InvalidRequest("options have single values", place=str(path), hint='Write endpoint = "http://…".')
    is_path = "://" not in url
    return LakeChoice(
        url=str(path.parent / Path(url).expanduser()) if is_path else url,
        options={name: _option_text(value) for name, value in options.items()},
        config=path,
    )


def split_pairs(pairs: Sequence[str] | None, name: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping. Raises InvalidRequest; a value is never repeated, since it may be a secret."""
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


def _option_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

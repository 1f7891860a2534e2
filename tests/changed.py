"""Runs the tests that a change can break, by the import graph: `make test-changed`.

A changed module can break those that import it, and so on; a test file among them is run. A string that names a module
counts as an import of it, since processes are started by such names. What other files can break is in `_BREAKS`.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
_NAMED = re.compile(r"\b(?:underlay|tests|bench)(?:\.\w+)+")
_EVERYTHING = ("pyproject.toml", "requirements.lock", "Makefile", ".ci/*", "tests/conftest.py", "tests/gate.py")
_BREAKS = {
    "*.md": ("tests/project/test_docs.py", "tests/project/test_errors.py", "tests/pm/format/test_layout.py"),
    "tests/fixtures/*": ("tests/genuine.py",),
    "src/underlay/registry/database/migrations/*": ("src/underlay/registry/database/migration.py",),
}
"""What a file that is not imported stands for."""
# These read the source of all modules.
_READERS = ("tests/test_layers.py", "tests/project/test_wheel.py")


@dataclass(frozen=True, slots=True)
class Use:
    """A file as others import it. A package is used for the names that it offers (it may load them when they are first
    asked for), or only on the way to a module in it."""

    file: Path
    on_the_way: bool = False


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module by its name."""
    found = {}
    for base, package in ((root / "src", "underlay"), (root, "tests"), (root, "bench")):
        for path in (base / package).rglob("*.py"):
            parts = path.relative_to(base).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def uses_of(path: Path, known: dict[str, Path]) -> Iterator[tuple[str, bool]]:
    """The modules that a file names, and whether it imports them at once, when it is imported itself."""
    tree = ast.parse(path.read_bytes())
    at_once = set(_at_once(tree.body))
    for node in ast.walk(tree):
        is_now = node in at_once
        if isinstance(node, ast.Import):
            yield from ((alias.name, is_now) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole not in known:
                    yield node.module, is_now
                yield whole, is_now  # or it was a module, and is deleted
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for name in _NAMED.findall(node.value):
                while name not in known and "." in name:
                    name = name.rpartition(".")[0]
                if "." in name:
                    yield name, False


def _at_once(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Try):
            yield from _at_once([*node.body, *node.orelse, *node.finalbody])


def importers(root: Path = ROOT) -> dict[Use, set[Use]]:
    """Who uses each file, directly."""
    known = modules(root)
    found: dict[Use, set[Use]] = defaultdict(set)
    for path in known.values():
        as_passed = Use(path, on_the_way=True)
        found[as_passed].add(Use(path))
        for name, is_now in uses_of(path, known):
            user = as_passed if is_now else Use(path)
            found[Use(known.get(name) or _would_be(name, root))].add(user)
            parts = name.split(".")
            for length in range(1, len(parts)):
                folder = ".".join(parts[:length])
                if folder in known:
                    found[Use(known[folder], on_the_way=True)].add(user)
        for folder in path.relative_to(root).parents:
            conftest = root / folder / "conftest.py"
            if path.name.startswith("test_") and conftest.exists():
                found[Use(conftest)].add(Use(path))
    return found


def _would_be(name: str, root: Path) -> Path:
    """Where a module was that is not there any longer."""
    base = root / "src" if name.startswith("underlay") else root
    return base / f"{name.replace('.', '/')}.py"


def broken_by(changed: Iterable[Path], users: dict[Use, set[Use]], root: Path = ROOT) -> dict[Path, Path]:
    """The test files that a change of these files can break, each with a changed file that is a reason."""
    reasons: dict[Use, Path] = {}
    for start in changed:
        todo = [Use(start, on_the_way=True), Use(start)]
        while todo:
            use = todo.pop()
            if use not in reasons:
                reasons[use] = start
                todo += users.get(use, ())
    tests = (use for use in reasons if use.file.name.startswith("test_") and (root / "tests") in use.file.parents)
    return {use.file: reasons[use] for use in tests if use.file.exists()}


def changed_files(since: str) -> list[Path]:
    """What is not committed, and what was committed since this branch left `since`."""
    try:
        (base,) = _git("merge-base", since, "HEAD")
    except subprocess.CalledProcessError:
        sys.exit(f"Git knows no {since} that this branch left. Name another: make test-changed SINCE=origin/main")
    names = _git("diff", "--name-only", "--no-renames", base)
    names += _git("ls-files", "--others", "--exclude-standard")
    return [ROOT / name for name in sorted(set(names))]


def _git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def chosen(changed: Iterable[Path], root: Path = ROOT) -> dict[Path, Path] | None:
    """The test files to run, each with its reason; None for all."""
    starts: dict[Path, Path] = {}
    for path in changed:
        name = str(path.relative_to(root))
        if any(fnmatch(name, pattern) for pattern in _EVERYTHING):
            return None
        stands_for = [root / one for pattern, ones in _BREAKS.items() if fnmatch(name, pattern) for one in ones]
        readers = [root / one for one in _READERS if name.startswith("src/")]
        starts |= dict.fromkeys((path, *stands_for, *readers), path)
    return {test: starts[start] for test, start in broken_by(starts, importers(root), root).items()}


def main() -> int:
    """Say what is chosen and why, and run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--since", default="main", help="the branch that this one left; uncommitted changes count too")
    parser.add_argument("--list", action="store_true", help="say what would be run, and run nothing")
    options, rest = parser.parse_known_args()
    changed = changed_files(options.since)
    if not changed:
        print("Nothing changed.")
        return 0
    tests = chosen(changed)
    if tests is None:
        print("A change of settings can break everything: all tests are run.")
        files = []
    else:
        by_reason: dict[Path, list[str]] = defaultdict(list)
        for test, reason in sorted(tests.items()):
            by_reason[reason].append(str(test.relative_to(ROOT)))
        for reason, names in by_reason.items():
            print(f"{reason.relative_to(ROOT)} can break {len(names)} test files, such as {', '.join(names[:3])}")
        files = sorted(str(test.relative_to(ROOT)) for test in tests)
        print(f"{len(changed)} changed files, {len(files)} test files")
        if not files:
            return 0
    if options.list:
        print("\n".join(files))
        return 0
    return subprocess.run([sys.executable, "-m", "pytest", *rest, *files], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Imports point down only, the public surface is short, and heavy libraries stay in their rooms."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

import underlay
import underlay.pm

SOURCE = Path(underlay.__file__).parent
REPOSITORY = Path(__file__).parents[1]

FOLDERS = [
    "_version",
    "errors",
    "values",
    "runtime",
    "store",
    "store/testing",
    "prune/predicates",
    "prune/domains",
    "prune/blocks",
    "prune/rows",
    "prune/parse",
    "prune",
    "schema",
    "schema/convert",
    "schema/cast",
    "schema/partitioning",
    "parquet/thrift",
    "parquet/records",
    "parquet/footer",
    "parquet/write",
    "parquet",
    "pm/format",
    "pm/prune",
    "pm/read",
    "pm/convert",
    "pm",
    "index",
    "index/segment",
    "index/intake",
    "index/sources",
    "plan",
    "cache",
    "table/versions",
    "table/commit",
    "table/catalog",
    "table",
    "table/coordination",
    "registry/database/migrations/versions",
    "registry/database/migrations",
    "registry/database",
    "registry/mirror",
    "registry/follow",
    "registry/rebuild",
    "registry",
    "scan/read",
    "scan/blooms",
    "scan",
    "scan/changes",
    "interop/exported",
    "change/files",
    "change/register",
    "change/rows",
    "change/update",
    "change/define",
    "change",
    "hot/txn",
    "hot/questdb",
    "hot/files",
    "hot/read",
    "hot/writer",
    "ingest/rows",
    "ingest/source",
    "ingest/csv",
    "ingest/json",
    "ingest/line_protocol",
    "ingest/exactly_once",
    "ingest/work",
    "ingest/run",
    "ingest",
    "interop/iceberg/columns",
    "interop/iceberg/objects",
    "interop/iceberg",
    "interop/delta",
    "interop/export",
    "interop/imports",
    "interop/from_delta",
    "interop/from_hive",
    "interop/from_iceberg",
    "interop/from_ducklake",
    "interop/from_questdb",
    "maintain/verify",
    "maintain/deep",
    "maintain/expire",
    "maintain/sweep",
    "maintain/compact",
    "maintain/care",
    "maintain",
    "hot/seal",
    "hot",
    "local/text",
    "local/show",
    "local/dataset",
    "local/implied",
    "local/sql",
    "local/conditions",
    "local/expressions",
    "local/clauses",
    "local/statements",
    "local",
    "interop",
    "api/opened",
    "api/changing",
    "api/views",
    "api",
    "api/limited",
    "spark/jvm",
    "spark/types",
    "spark/filters",
    "spark/start",
    "spark/files",
    "spark/tasks",
    "spark/source",
    "spark/ranged",
    "spark/relation",
    "spark/catalog",
    "spark/native",
    "spark/change",
    "spark/stream",
    "spark/sql",
    "spark/api",
    "spark/serving",
    "spark",
    "client",
    "server/lockdown",
    "server/formats",
    "server/common",
    "server/access",
    "server/kept",
    "server/page",
    "server/worker",
    "server/on_spark",
    "server/statements",
    "server/flight",
    "server/hot_writes",
    "server/routes",
    "server/iceberg",
    "server",
    "cli/common",
    "cli/registry",
    "cli/maintenance",
    "cli/ingest",
    "cli/pm",
    "cli/hot",
    "cli/rows",
    "cli/changing",
    "cli/care",
    "cli/interop",
    "cli/serve",
    "cli/tables",
    "cli",
    "cli/demo",
    "__main__",
]
"""Bottom first, and modules beside them. A module may import from its own folder and from those before it."""

MOST_MODULES = 12
"""In one folder, `__init__` and folders inside it not counted; also of tests and benchmarks."""

MOST_LINES = 400
"""In one module."""

REPEATED_CLASSES: list[str] = []
"""Public class names that several modules define. This list may only shrink."""

ROOMS = {
    "pyspark": "spark",
    "py4j": "spark",
    "fastapi": "server",
    "starlette": "server",
    "uvicorn": "server",
    "sqlalchemy": "registry",
    "fastavro": "interop",
    "typer": "cli",
    "rich": "cli",
}
"""A library and the only package that may import it."""


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.name != "__init__.py")


def suite_and_benchmarks() -> list[Path]:
    folders = (REPOSITORY / "tests", REPOSITORY / "bench")
    return sorted(path for folder in folders for path in folder.rglob("*.py") if path.name != "__init__.py")


def folder_of(path: Path) -> str:
    inner = path.relative_to(SOURCE)
    return inner.stem if inner.parent == Path() else inner.parent.as_posix()


def folder_named(name: str) -> str | None:
    """The folder in which a module, or a name in a module, lies; None for what is not ours."""
    first, *parts = name.split(".")
    while first == "underlay" and parts:
        if "/".join(parts) in FOLDERS:
            return "/".join(parts)
        parts.pop()
    return None


@cache
def imported(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.append(node.module or "")
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def points_up(path: Path, name: str) -> bool:
    own, folder = folder_of(path), folder_named(name)
    if folder is None or (path.name == "__init__.py" and folder.startswith(f"{own}/")):
        return False  # a package gives names of the folders in it
    return FOLDERS.index(folder) > FOLDERS.index(own)


def is_out_of_its_room(path: Path, name: str) -> bool:
    room = ROOMS.get(name.split(".")[0])
    return room is not None and folder_of(path).split("/")[0] != room


def imports() -> list[tuple[Path, str]]:
    return [(path, name) for path in modules() for name in imported(path)]


def test_imports_point_down_only():
    assert [f"{path.relative_to(SOURCE)}: {name}" for path, name in imports() if points_up(path, name)] == []


def test_heavy_libraries_stay_in_their_rooms():
    assert [f"{path.relative_to(SOURCE)}: {name}" for path, name in imports() if is_out_of_its_room(path, name)] == []


def test_every_folder_has_a_layer():
    assert {folder_of(path) for path in modules()} == set(FOLDERS)


def test_folders_hold_few_modules():
    counts = Counter(folder_of(path) for path in modules() if path.name != "__init__.py")
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_folders_of_suite_and_benchmarks_hold_few_modules():
    counts = Counter(path.parent for path in suite_and_benchmarks())
    crowded = {str(folder.relative_to(REPOSITORY)): count for folder, count in counts.items() if count > MOST_MODULES}
    assert crowded == {}, "make a folder, as the source has them"


def test_every_folder_says_what_it_holds():
    fronts = [path for path in modules() if path.name == "__init__.py"]
    assert [str(path) for path in fronts if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_no_module_is_long():
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in modules()}
    assert {path: length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_no_module_of_tests_and_benchmarks_is_long():
    lengths = {str(path.relative_to(REPOSITORY)): len(path.read_text().splitlines()) for path in suite_and_benchmarks()}
    assert {path: length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_a_public_class_name_means_one_thing():
    places = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))
    repeated = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert {name: paths for name, paths in repeated.items() if name not in REPEATED_CLASSES} == {}
    assert set(REPEATED_CLASSES) <= set(repeated), "take names that are unique now off the list"


def test_public_names():
    assert set(underlay.__all__) == {*underlay._HOMES, "__version__", "errors"}
    assert underlay.__all__ == sorted(underlay.__all__)
    assert set(underlay.__all__) <= set(dir(underlay))
    for name in underlay.__all__:
        assert getattr(underlay, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = underlay.nothing


def test_public_names_of_the_sidecar_package():
    assert underlay.pm.__all__ == sorted(underlay.pm._HOMES)
    for name in underlay.pm.__all__:
        assert getattr(underlay.pm, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        _ = underlay.pm.nothing


def loaded_by(code: str) -> set[str]:
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint(*sys.modules, file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["pm", "--help"], ["pm", "build", "-h"], ["--version"]])
def test_help_answers_without_loading_anything(arguments: list[str]):
    code = f"sys.argv = ['underlay', *{arguments}]; from underlay.cli.main import run; run()"
    ours = {"underlay", "underlay._version", "underlay.cli", "underlay.cli.main"}
    assert loaded_by(code) - loaded_by("pass") == {*ours, "__future__"}


def test_commands_are_parsed_without_the_heavy_libraries():
    code = "sys.argv = ['underlay', 'sql', '--no-such-option']; from underlay.cli.main import run; run()"
    assert loaded_by(code).isdisjoint({"pyspark", "pyarrow", "numpy", "duckdb", "sqlglot", "sqlalchemy"})


def test_importing_the_package_loads_nothing_heavy():
    heavy = {"pandas", "pyspark", "sqlalchemy", "duckdb", "pyarrow", "pyarrow.dataset", "numpy", "sqlglot", "typer"}
    assert loaded_by("import underlay").isdisjoint(heavy)


def test_opening_a_lake_loads_no_engine_and_no_reader_of_sources():
    heavy = {"pandas", "pyspark", "sqlalchemy", "duckdb", "pyarrow.dataset", "sqlglot", "underlay.ingest.run.ingest"}
    assert loaded_by("import underlay; underlay.connect").isdisjoint(heavy)


def test_importing_the_sidecar_package_loads_nothing_heavy():
    assert loaded_by("import underlay.pm").isdisjoint({"pyspark", "pyarrow", "numpy", "duckdb", "sqlglot", "typer"})


def test_no_module_has_a_lock_that_a_forked_child_could_wait_for():
    """Use `ProcessLock` and `cached_property` of `underlay.runtime.locks`, or make locks again in `start_afresh`."""
    for path in SOURCE.rglob("*.py"):
        if path.parent.name == "runtime" or path.parts[-3:-1] in {("cli", "ingest"), ("store", "testing")}:
            continue  # commands do not fork, and the doubles of stores are for tests
        text = path.read_text()
        has_lock = re.search(r"^from threading import .*\b(R?Lock|Condition)\b", text, re.MULTILINE)
        assert not has_lock or "def start_afresh" in text, path
        has_property = re.search(r"^from functools import .*\bcached_property\b", text, re.MULTILINE)
        assert not has_property, f"{path}: take cached_property from underlay.runtime.locks"

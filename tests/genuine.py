"""The genuine files in `tests/fixtures/genuine.tar.xz`, unpacked once per machine, and lists of them by kind."""

from __future__ import annotations

import os
import tarfile
import tempfile
import zlib
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).parent / "fixtures" / "genuine.tar.xz"
GENERATIONS = {"9.4.3": "9.4", "10.0.0": "10"}
"""QuestDB's version, and the name of the format generation it writes."""


@cache
def fixtures() -> Path:
    """The folder with the unpacked files."""
    name = f"underlay-fixtures-{os.getuid()}-{zlib.crc32(ARCHIVE.read_bytes()):08x}"
    folder = Path(tempfile.gettempdir()) / name
    if not folder.exists():
        unpacked = Path(tempfile.mkdtemp(prefix=name))
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(unpacked, filter="data")
        try:
            unpacked.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was first
                raise
    return folder


def label(path: Path) -> str:
    """A short name for a test's id."""
    return str(path.relative_to(fixtures()))


def sidecars() -> list[Path]:
    """Every `_pm` that QuestDB wrote, whether a server, its converter or its writers' own tests."""
    return sorted(p for p in (fixtures() / "questdb").rglob("*") if "_pm" in p.name and p.is_file())


def conversions() -> list[tuple[Path, Path, str]]:
    """(Parquet file, what QuestDB's converter made of it, generation)."""
    found = []
    for version, generation in GENERATIONS.items():
        root = fixtures() / "questdb" / version
        for made in sorted(root.rglob("*generated_pm*")):
            stem, _, state = made.name.partition("generated_pm")
            data = made.with_name(f"data.parquet{state}" if not stem else f"{stem}parquet")
            found.append((data, made, generation))
    return found


def refused_conversions() -> list[tuple[Path, str]]:
    """(Parquet file that QuestDB's converter refuses, generation)."""
    return [
        (path.with_name(path.name.replace(".generate_error.txt", ".parquet")), generation)
        for version, generation in GENERATIONS.items()
        for path in sorted((fixtures() / "questdb" / version).rglob("*.generate_error.txt"))
    ]


def parquet_files() -> list[Path]:
    """Every Parquet file that is not broken on purpose."""
    return sorted((fixtures() / "parquet-testing" / "data").glob("*.parquet")) + sorted(
        (fixtures() / "questdb").rglob("*.parquet")
    )

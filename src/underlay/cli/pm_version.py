"""Which version of a sidecar a command means."""

from __future__ import annotations

from pathlib import Path

from underlay.errors import UnderlayError, VersionNotFound
from underlay.pm.file import read_sidecar
from underlay.pm.footers import walk
from underlay.pm.sidecar import Sidecar, decode


def open_version(file: Path, version_size: int | None) -> Sidecar:
    """The newest version, or the one whose Parquet file, else whose sidecar, has `version_size` bytes."""
    if version_size is None:
        return read_sidecar(file)
    return _earlier_version(file, read_sidecar(file, check=False), version_size)


def _earlier_version(file: Path, newest: Sidecar, version_size: int) -> Sidecar:
    try:
        footers = list(walk(newest.data, newest.size))
        for footer in footers:
            if footer.parquet_size == version_size:
                return decode(newest.data, size=footer.size)
        for footer in footers:
            if footer.size == version_size:
                return decode(newest.data, size=footer.size)
    except UnderlayError as error:
        raise error.at(str(file)) from None
    raise VersionNotFound(
        f"no version of {version_size} bytes",
        place=str(file),
        hint=f'"underlay pm versions {file}" lists them.',
    )

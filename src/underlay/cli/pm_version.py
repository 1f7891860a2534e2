"""Which version of a sidecar a command means."""

from __future__ import annotations

from pathlib import Path

from underlay.errors import UnderlayError, VersionNotFound
from underlay.pm.file import read_committed, read_sidecar
from underlay.pm.footers import walk
from underlay.pm.sidecar import Sidecar, decode


def open_version(file: Path, version_size: int | None) -> Sidecar:
    """The newest version, or the one whose Parquet file, else whose sidecar, has `version_size` bytes.

    Versions newer than the one that is asked for need not be readable.
    """
    if version_size is None:
        return read_sidecar(file)
    data = read_committed(file)
    try:
        footers = list(walk(data, len(data)))
        for wanted in ("parquet_size", "size"):
            for footer in footers:
                if getattr(footer, wanted) == version_size:
                    return decode(data, size=footer.size)
    except UnderlayError as error:
        raise error.at(str(file)) from None
    raise VersionNotFound(
        f"no version of {version_size} bytes",
        place=str(file),
        hint=f'"underlay pm versions {file}" lists them.',
    )

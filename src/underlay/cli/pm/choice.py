"""Parses options of `underlay pm`: columns, row groups, and the version of a sidecar."""

from __future__ import annotations

import csv
from pathlib import Path

from underlay.errors import InvalidRequest, UnderlayError, UnknownColumn, VersionNotFound, name_hint
from underlay.pm.file import read_committed, read_sidecar
from underlay.pm.format.footers import walk
from underlay.pm.format.sidecar import Sidecar, decode


def split_names(text: str | None) -> list[str] | None:
    """Names separated by commas, as in a line of CSV: a name with a comma is in double quotes. None stays None."""
    if text is None:
        return None
    names = [name.strip() for line in csv.reader([text], skipinitialspace=True) for name in line]
    if not any(names) or not all(names):
        raise InvalidRequest("--columns takes names separated by commas", found=text or "nothing")
    return names


def split_numbers(text: str | None) -> list[int] | None:
    """Numbers separated by commas; None stays None."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidRequest("--row-groups takes numbers separated by commas", found=text or "nothing") from None


def column_indices(sidecar: Sidecar, names: list[str]) -> list[int]:
    """The positions of all columns with these names, each once, in the order of the names.

    Raises UnknownColumn for a name that no column has.
    """
    found: dict[int, None] = {}
    for name in names:
        indices = [i for i, column in enumerate(sidecar.columns) if column.name == name]
        if not indices:
            hint = name_hint(name, (column.name for column in sidecar.columns))
            raise UnknownColumn(f"there is no column {name}", hint=hint)
        found.update(dict.fromkeys(indices))
    return list(found)


def open_version(file: Path, version_size: int | None) -> Sidecar:
    """The newest version, or the one whose Parquet file, else whose sidecar, has `version_size` bytes.

    Versions newer than the requested one need not be readable.
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

"""What an export leaves out, and how it is written: as arguments, or as a table's properties `export…`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypedDict, cast

from underlay.errors import InvalidRequest
from underlay.schema.table_schema import TableSchema

ICEBERG = "iceberg"
DELTA = "delta"
KINDS = (ICEBERG, DELTA)
EXPORT = "export"
WITHOUT = "export.without"
BASE_URL = "export.base_url"
FORMAT = "export.format"
EXPORT_PROPERTIES = (EXPORT, WITHOUT, BASE_URL, FORMAT)
DEFAULTS = frozenset((WITHOUT, BASE_URL, FORMAT))
"""Properties that say how a table is exported."""
FORMATS = (2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """The settings of one export."""

    without: tuple[str, ...] = ()
    """Columns to leave out."""
    columns: tuple[str, ...] | None = None
    """The only columns to export; None for all."""
    base_url: str | None = None
    """What other engines call the lake's folder; None for the lake's own URL."""
    format: int | None = None
    """Iceberg's format, 2 or 3; None for 2 unless something needs 3."""

    def left_out(self, schema: TableSchema) -> frozenset[str]:
        """The columns that were asked to be left out. Raises UnknownColumn."""
        named = {schema.column(name).name for name in self.without}
        if self.columns is not None:
            chosen = {schema.column(name).name for name in self.columns}
            named |= set(schema.names) - chosen
        if named >= set(schema.names):
            raise InvalidRequest("all columns are left out", hint="Export at least one column.")
        return frozenset(named)


class Asked(TypedDict, total=False):
    """The arguments of an export, to repeat it."""

    columns: list[str] | None
    without: list[str]
    base_url: str | None
    format: int | None


def read_asked(text: str | None) -> Asked:
    """What `asked_json` wrote; nothing if it is something else."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return cast(Asked, {name: found[name] for name in Asked.__annotations__ if name in found})


def asked_json(settings: ExportSettings) -> str:
    """The settings, to export in the same way again."""
    return json.dumps(asdict(settings))


def check_kind(kind: str) -> str:
    """`kind`, if it is one. Raises InvalidRequest."""
    if kind not in KINDS:
        raise InvalidRequest("no such kind of export", expected=" or ".join(KINDS), found=repr(kind))
    return kind


def kinds_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The kinds that a table is exported as after each commit. Raises InvalidRequest."""
    names = [name.strip() for name in properties.get(EXPORT, "").split(",")]
    return tuple(check_kind(name) for name in dict.fromkeys(names) if name)


def settings_of(
    properties: Mapping[str, str],
    *,
    columns: Sequence[str] | None = None,
    without: Sequence[str] | None = None,
    base_url: str | None = None,
    format: int | None = None,
) -> ExportSettings:
    """The settings: what is given, else the table's properties. Raises InvalidRequest."""
    for given, name in ((columns, "columns"), (without, "without")):
        if isinstance(given, str):
            raise InvalidRequest(f"{name} must be a list of names", found=repr(given), hint=f"Write [{given!r}].")
    text = properties.get(FORMAT)
    wanted = format if format is not None else int(text) if text is not None and text.isdecimal() else text
    if wanted is not None and (isinstance(wanted, bool) or wanted not in FORMATS):
        raise InvalidRequest("Iceberg's format must be 2 or 3", found=repr(wanted))
    by_property = [name.strip() for name in properties.get(WITHOUT, "").split(",")]
    left_out = without if without is not None or columns is not None else [name for name in by_property if name]
    return ExportSettings(
        without=tuple(left_out or ()),
        columns=None if columns is None else tuple(columns),
        base_url=base_url or properties.get(BASE_URL),
        format=wanted if isinstance(wanted, int) else None,
    )

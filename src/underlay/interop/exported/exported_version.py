"""What an export did, or why a table cannot be exported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from underlay.errors import NotExportable

_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a column or some files cannot be exported. `rule` is that of docs/interop.md."""

    subject: str
    """`column size`, or `3 files, such as …`."""
    rule: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason} ({self.rule}). {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export did, or would do."""

    table: str
    kind: str
    url: str
    """What engines are given: the table's folder."""
    metadata_url: str | None
    """The newest metadata.json of an Iceberg table."""
    version: int
    """The exported version."""
    format: int | None
    """Iceberg's format."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that are not in the export, with the reason."""
    refused: tuple[Refusal, ...] = ()
    """Why the version cannot be exported; only in a dry run, and in exports of all tables."""
    notes: tuple[str, ...] = ()
    """What readers should know."""
    puts: int = 0
    """Objects that were put; 0 if the newest export was this one already."""
    is_dry_run: bool = False


def not_exportable(table: str, kind: str, refusals: Iterable[Refusal]) -> NotExportable:
    """The error that lists these reasons."""
    found = tuple(refusals)
    lines = [f"\n  {one}" for one in found[:_SHOWN]]
    more = f"\n  … and {len(found) - _SHOWN} more reasons." if len(found) > _SHOWN else ""
    error = NotExportable(
        f"the table cannot be exported as {kind} truthfully, so nothing was exported",
        place=table,
        hint="".join(lines) + more,
    )
    error.refusals = found
    return error


def refused_table(table: str, kind: str, version: int, error: NotExportable, *, is_dry_run: bool) -> Exported:
    """A table that was not exported, in a list of those that were."""
    refused = tuple(one for one in error.refusals if isinstance(one, Refusal))
    return Exported(
        table=table,
        kind=kind,
        url="",
        metadata_url=None,
        version=version,
        format=None,
        refused=refused,
        is_dry_run=is_dry_run,
    )

"""The health of a table, from its metadata alone: what slows queries and fills the store, and how to fix it.

Reads the newest root; of each of its segments the list of files and the bounds of the sort column; the root of the
oldest unexpired version with its lists of files; and one page of the listing. Touches no data file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underlay.index import deletion_vectors as bitmaps
from underlay.index.keys import ObjectKind, own_token
from underlay.index.root import Root
from underlay.maintain.sweep.sweep_lake import DEFAULT_GRACE
from underlay.plan.leaf_bounds import file_bounds
from underlay.plan.part import Part
from underlay.schema.table_schema import LeafColumn
from underlay.table.care_settings import DEFAULT_KEEP_VERSIONS, read_settings
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.snapshot import Snapshot
from underlay.values.duration import read_duration

TARGET_FILE_BYTES = 128 << 20
_SMALL = 2
"""A file smaller than the target divided by this is small."""
_SAMPLE = 1000
"""Objects in one page of a listing."""
_MUCH_DEAD = 0.05
_MUCH_OVERLAP = 0.2
_MANY_FILES = 8
_SOME_ORPHANS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """Something that care would improve."""

    kind: str
    """`small files`, `dead rows`, `unsorted`, `versions`, `orphans`."""
    text: str
    command: str
    """The command that fixes it."""
    saved_bytes: int = 0
    """About how much that would free."""
    saved_requests: int = 0
    """About how many fewer files a scan of the whole table would open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of a table."""

    table: str
    version: int
    file_count: int
    data_bytes: int
    row_count: int
    small_file_count: int
    small_file_bytes: int
    dead_row_count: int
    dead_bytes: int
    """The estimated bytes of deleted rows, by their share of each file's rows."""
    unsorted_share: float | None
    """Among files with a range of the first sort column, the share that overlaps another file; None without an
    order."""
    version_count: int
    """Versions that have not expired."""
    old_bytes: int
    """Bytes of files that the oldest version has and the newest does not."""
    sampled_count: int
    orphan_share: float
    """In a sample of the listing, the share of files that neither the newest nor the oldest version has. Versions in
    between may have them."""
    findings: tuple[HealthFinding, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    sizes: NDArray[np.int64]
    rows: NDArray[np.int64]
    deleted: NDArray[np.int64]
    tokens: frozenset[str]


def find_health(table: OpenTable) -> Health:
    """Examine the newest version. Changes nothing."""
    head = table.head()
    snapshot = table.snapshot(head)
    settings = read_settings(head.root.definition.properties)
    target = settings.target_file_bytes or TARGET_FILE_BYTES
    parts = snapshot.parts()
    files = _files(parts)
    is_small = files.sizes * _SMALL < target
    shares = files.deleted / np.maximum(files.rows, 1)
    oldest = _oldest(head)
    old = _files(Snapshot(snapshot.store, snapshot.keys, oldest, snapshot.load_segment).parts())
    sample_count, orphans = _sample(head, files.tokens | old.tokens)
    leaf = _sort_leaf(snapshot)
    left = head.root.version + 1 - head.root.retention.begin + len(head.root.retention.also)
    known = Health(
        table=table.name,
        version=head.root.version,
        file_count=len(files.sizes),
        data_bytes=int(files.sizes.sum()),
        row_count=head.root.row_count,
        small_file_count=int(is_small.sum()),
        small_file_bytes=int(files.sizes[is_small].sum()),
        dead_row_count=int(files.deleted.sum()),
        dead_bytes=int((files.sizes * shares).sum()),
        unsorted_share=None if leaf is None else _unsorted(parts, leaf),
        version_count=left,
        old_bytes=_only_old(old, files),
        sampled_count=sample_count,
        orphan_share=len(orphans) / sample_count if sample_count else 0.0,
        findings=(),
    )
    keep = DEFAULT_KEEP_VERSIONS if settings.keep_versions is None else settings.keep_versions
    when = _when_they_go(orphans, head.revision.surroundings.now_us())
    return replace(known, findings=_findings(known, target, keep, when))


def _files(parts: list[Part]) -> _Files:
    sizes, rows, deleted = [], [], []
    tokens: set[str] = set()
    for part in parts:
        segment = part.segment
        here = segment.files.deleted_rows.copy()
        for row, bits in part.deletes.items():
            here[row] = bitmaps.count(bits)
        is_kept = np.ones(segment.file_count, np.bool_) if part.is_removed is None else ~part.is_removed
        sizes.append(segment.files.size_bytes[is_kept])
        rows.append(segment.file_rows[is_kept])
        deleted.append(here[is_kept])
        names = zip(segment.locations.to_pylist(), is_kept.tolist(), strict=True)
        tokens |= {token for name, kept in names if kept and (token := own_token(str(name))) is not None}
    empty = np.zeros(0, np.int64)
    return _Files(
        sizes=np.concatenate([empty, *sizes]),
        rows=np.concatenate([empty, *rows]),
        deleted=np.concatenate([empty, *deleted]),
        tokens=frozenset(tokens),
    )


def _only_old(old: _Files, new: _Files) -> int:
    """Estimated bytes of files that only the old version has: its size times the share of its files that are gone."""
    gone = len(old.tokens - new.tokens)
    return int(old.sizes.sum() * gone / max(len(old.sizes), 1))


def _oldest(head: Head) -> Root:
    begin = head.root.retention.begin
    return head.root if begin >= head.root.version else head.revision.root(begin)


def _sort_leaf(snapshot: Snapshot) -> LeafColumn | None:
    order = snapshot.definition.sort_by
    return snapshot.schema.leaf_by_id.get(order[0].field) if order else None


def _unsorted(parts: list[Part], leaf: LeafColumn) -> float:
    """The share of files whose range of the column overlaps that of a file before them."""
    ranges: list[tuple[Any, Any]] = []  # Any: integers, or bytes
    for part in parts:
        (found,) = file_bounds(part.segment, leaf).ranges
        is_known = found.has_minimum & found.has_maximum
        if part.is_removed is not None:
            is_known = is_known & ~part.is_removed
        ranges += zip(found.minimum[is_known].tolist(), found.maximum[is_known].tolist(), strict=True)
    overlapping, end = 0, None
    for low, high in sorted(ranges):
        overlapping += end is not None and low < end
        end = high if end is None else max(end, high)
    return overlapping / len(ranges) if ranges else 0.0


def _sample(head: Head, known: frozenset[str]) -> tuple[int, list[datetime]]:
    """How many data files were looked at, of the first page of the listing, and when those of these were written that
    no version is known to use.
    """
    keys = head.revision.keys
    found = [
        (name, one.modified)
        for one in islice(head.revision.store.list_objects(keys.folder), _SAMPLE)
        for kind, name in [keys.kind_of(one.key)]
        if kind is ObjectKind.FILE
    ]
    return len(found), [modified for name, modified in found if name not in known]


def _when_they_go(orphans: list[datetime], now_us: int) -> str:
    """Which orphans a sweep would leave, and until when; this process's clock is good enough for that."""
    grace = read_duration(DEFAULT_GRACE, "grace")
    now = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=now_us)
    young = [modified + grace for modified in orphans if modified + grace > now]
    if not young:
        return ""
    which = "all" if len(young) == len(orphans) else f"{len(young):,} of the {len(orphans):,}"
    return f"; {which} are younger than {DEFAULT_GRACE}, and a sweep leaves them until {max(young):%Y-%m-%d %H:%M} UTC"


def _findings(known: Health, target: int, keep: int, when: str) -> tuple[HealthFinding, ...]:
    found = []
    after = -(-known.small_file_bytes // target)
    if known.small_file_count >= _MANY_FILES and known.small_file_count > 2 * after:
        found.append(
            HealthFinding(
                kind="small files",
                text=f"{known.small_file_count:,} of {known.file_count:,} files are small; {after:,} would do",
                command=f"underlay compact {known.table}",
                saved_requests=known.small_file_count - after,
            )
        )
    total = known.row_count + known.dead_row_count
    if total and known.dead_row_count / total > _MUCH_DEAD:
        found.append(
            HealthFinding(
                kind="dead rows",
                text=f"{known.dead_row_count:,} of {total:,} rows in files are deleted",
                command=f"underlay compact {known.table}",
                saved_bytes=known.dead_bytes,
            )
        )
    if known.unsorted_share is not None and known.unsorted_share > _MUCH_OVERLAP and known.file_count >= _MANY_FILES:
        found.append(
            HealthFinding(
                kind="unsorted",
                text=f"{known.unsorted_share:.0%} of files overlap another one in the sort column",
                command=f"underlay compact {known.table} --order sort",
            )
        )
    if known.version_count > 2 * keep:
        found.append(
            HealthFinding(
                kind="versions",
                text=f"{known.version_count:,} versions are left",
                command=f"underlay expire {known.table} --yes",
                saved_bytes=known.old_bytes,
            )
        )
    if known.orphan_share > _SOME_ORPHANS:
        found.append(
            HealthFinding(
                kind="orphans",
                text=f"up to {known.orphan_share:.0%} of the files in the store are in no version (of a sample of "
                f"{known.sampled_count:,}){when}",
                command="underlay sweep --yes",
                saved_bytes=int(known.data_bytes * known.orphan_share / max(1 - known.orphan_share, 0.01)),
            )
        )
    return tuple(found)

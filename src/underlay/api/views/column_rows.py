"""The columns of a version as rows: what they are, and what metadata says about their values. Reads no data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from underlay.api.opened.versioned_table import VersionedTable
from underlay.api.views.block_map import location_of
from underlay.index.entry import Flag
from underlay.index.segment.bounds import has_flag
from underlay.plan import answers
from underlay.plan.chunks import chunk_table
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyType
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.table_schema import LeafColumn
from underlay.table.versions.snapshot import Snapshot

Row = dict[str, object]
_TEXT, _NUMBER, _YES = pa.string(), pa.int64(), pa.bool_()
COLUMNS: dict[str, AnyType] = {
    "name": _TEXT, "type": _TEXT, "nullable": _YES, "comment": _TEXT, "default": _TEXT, "min": _TEXT, "max": _TEXT,
    "null_count": _NUMBER, "bytes": _NUMBER, "blocks_with_bloom": _NUMBER, "low": _TEXT, "high": _TEXT,
}  # fmt: skip
CHANGES: dict[str, AnyType] = {
    "file": _TEXT, "change": _TEXT, "rows": _NUMBER, "deleted_rows": _NUMBER, "bytes": _NUMBER,
}  # fmt: skip


def column_rows(table: VersionedTable) -> Iterator[Row]:
    """One row for each leaf. `min` and `max` are exact, and missing where only a scan can tell; `low` and `high` are
    bounds, also where no row has these values, such as after a deletion."""
    snapshot = table.snapshot()
    plan = table.query(None, None).plan
    fields = {field.name: field for field in snapshot.schema.fields}
    for leaf in snapshot.schema.leaves:
        name = format_column(leaf.path)
        top = fields[leaf.path[0]]
        nulls, size, blooms = _sums(snapshot, leaf)
        yield {
            "name": name,
            "type": str(to_arrow_type(leaf.type)),
            "nullable": not top.is_required,
            "comment": top.comment if len(leaf.path) == 1 else None,
            "default": None if leaf.default is None else str(leaf.default),
            "min": None if leaf.is_repeated else _shown(answers.minimum(plan, leaf.id)),
            "max": None if leaf.is_repeated else _shown(answers.maximum(plan, leaf.id)),
            "null_count": nulls,
            "bytes": size,
            "blocks_with_bloom": blooms,
            "low": _shown(answers.lower_bound(plan, leaf.id)),
            "high": _shown(answers.upper_bound(plan, leaf.id)),
        }


def _sums(snapshot: Snapshot, leaf: LeafColumn) -> tuple[int | None, int, int]:
    """Null count, if no row was deleted and all blocks record theirs; bytes; and number of blocks with bloom
    filters.
    """
    nulls, size, blooms, is_known = 0, 0, 0, True
    for part in snapshot.parts():
        segment = part.segment
        segment.prefetch(statistics=[leaf.id], places=[leaf.id])
        owners = segment.file_of_block
        blocks = np.arange(len(owners)) if part.is_removed is None else np.flatnonzero(~part.is_removed[owners])
        chunks = chunk_table(segment, snapshot.schema, blocks, [leaf.id])
        flags, rows = chunks.flags[:, 0], segment.block_rows[blocks]
        is_absent = has_flag(flags, Flag.IS_ABSENT)
        counted = np.where(is_absent, 0 if leaf.default is not None else rows, chunks.null_counts[:, 0])
        is_known = is_known and bool((has_flag(flags, Flag.HAS_NULL_COUNT) | is_absent).all()) and not part.deletes
        is_known = is_known and not segment.files.deleted_rows.any()
        nulls += int(counted.sum())
        size += int(chunks.sizes[~is_absent, 0].sum())
        blooms += int(has_flag(flags, Flag.HAS_BLOOM).sum())
    return nulls if is_known and not leaf.is_repeated else None, size, blooms


def _shown(value: pa.Scalar[AnyType] | None) -> str | None:
    if value is None or not value.is_valid:
        return None
    found = value.as_py()
    if isinstance(found, bytes):
        return found.hex()
    return str(found) if isinstance(value, pa.ExtensionScalar) else str(value.cast(pa.string()))


def file_changes(before: Snapshot, after: Snapshot) -> Iterator[Row]:
    """How the files of two versions differ: files added, files removed, and files that lost rows."""
    known = {file.location: file for file in before.files()}
    for file in after.files():
        old = known.pop(file.location, None)
        if old is None or old.deleted_rows != file.deleted_rows:
            yield {
                "file": location_of(after, file.location),
                "change": "added" if old is None else "rows deleted",
                "rows": _rows(file.block_rows),
                "deleted_rows": file.deleted_rows - (0 if old is None else old.deleted_rows),
                "bytes": file.size_bytes,
            }
    for file in known.values():
        yield {
            "file": location_of(before, file.location),
            "change": "removed",
            "rows": _rows(file.block_rows),
            "deleted_rows": file.deleted_rows,
            "bytes": file.size_bytes,
        }


def definition_changes(before: Snapshot, after: Snapshot) -> list[Row]:
    """How columns, comments and properties differ between two versions. Columns are matched by id."""
    old, new = ({leaf.id: leaf for leaf in one.schema.leaves} for one in (before, after))
    found: list[Row] = []
    for id, leaf in new.items():
        name, was = format_column(leaf.path), old.get(id)
        if was is None:
            found.append({"change": "added", "column": name, "type": str(to_arrow_type(leaf.type))})
            continue
        if was.path != leaf.path:
            found.append({"change": "renamed", "column": name, "was": format_column(was.path)})
        if was.type != leaf.type:
            kinds = (str(to_arrow_type(one.type)) for one in (leaf, was))
            found.append({"change": "type", "column": name, **dict(zip(("type", "was"), kinds, strict=True))})
    found += [{"change": "dropped", "column": format_column(leaf.path)} for id, leaf in old.items() if id not in new]
    first, last = before.definition, after.definition
    for name in sorted(first.properties.keys() | last.properties.keys()):
        text, now = first.properties.get(name), last.properties.get(name)
        if text != now:
            found.append({"change": "property", "property": name, "was": text, "now": now})
    if first.comment != last.comment:
        found.append({"change": "comment", "was": first.comment, "now": last.comment})
    return found


def _rows(block_rows: bytes) -> int:
    return int(np.frombuffer(block_rows, "<i8").sum())

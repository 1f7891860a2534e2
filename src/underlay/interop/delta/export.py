"""Exports a version as a table of Delta: an entry of the log with what changed since the last one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from underlay.errors import Busy
from underlay.interop.delta.actions import add_actions, deletion_vector, remove_action
from underlay.interop.delta.checkpoint import read_checkpoint, write_checkpoint
from underlay.interop.delta.columns import DeltaChoice, choose_delta
from underlay.interop.delta.log import OURS, ExportLog, ExportState
from underlay.interop.exported.exported_version import Exported, not_exportable
from underlay.interop.exported.settings import DELTA, ExportSettings
from underlay.interop.iceberg.columns.types import Json
from underlay.schema.table_schema import leaves_in
from underlay.table.versions.snapshot import Snapshot

_ATTEMPTS = 20
GUARD = "underlayExport"
"""A writer feature that nobody has: who does not know it must not write, compact or vacuum."""
_VECTOR = "deletionVector"
_VECTORS, _NTZ, _INVARIANTS = "deletionVectors", "timestampNtz", "invariants"


def export_delta(
    snapshot: Snapshot, name: str, log: ExportLog, revision: str, settings: ExportSettings, *, url: str, dry_run: bool
) -> Exported:
    """Export this version, unless the log ends with it. Raises NotExportable, unless it is a dry run."""
    choice = choose_delta(snapshot, settings)
    if choice.refusals and not dry_run:
        raise not_exportable(name, "a table of Delta", choice.refusals)
    puts = 0 if dry_run else _publish(snapshot, log, revision, choice, name)
    return Exported(
        table=name,
        kind=DELTA,
        url=url,
        metadata_url=None,
        version=snapshot.version,
        format=None,
        left_out=choice.left_out,
        refused=choice.refusals,
        puts=puts,
        is_dry_run=dry_run,
    )


def _publish(snapshot: Snapshot, log: ExportLog, revision: str, choice: DeltaChoice, name: str) -> int:
    for _ in range(_ATTEMPTS):
        state = log.replay(read_checkpoint(log))
        if _is_done(state, snapshot, revision, choice):
            return 0
        actions = _actions(snapshot, state, revision, choice, name)
        if log.publish(state.number + 1, actions):
            return 1 + write_checkpoint(log, state.after(actions))
    raise Busy("other exporters were faster each time", place=log.folder, hint="Try again later.")


def _is_done(state: ExportState, snapshot: Snapshot, revision: str, choice: DeltaChoice) -> bool:
    """Whether the log ends with this version as it is to be exported, or with a newer one."""
    known = state.exported
    if known.get("revision") != revision:
        return False
    if int(known.get("version", -1)) > snapshot.version:
        return True
    return known.get("commit_id") == snapshot.root.commit_id and known.get("schema") == _fingerprint(choice)


def _fingerprint(choice: DeltaChoice) -> str:
    return blake2b(json.dumps(choice.schema_json).encode(), digest_size=8).hexdigest()


def _actions(snapshot: Snapshot, state: ExportState, revision: str, choice: DeltaChoice, name: str) -> list[Json]:
    stamp_ms = snapshot.root.committed_us // 1000
    vectors = {f"{revision}/{location}": vector for location, vector in _files(snapshot)}
    kept = {path for path, add in state.files.items() if path in vectors and add.get(_VECTOR) == vectors[path]}
    gone = [add for path, add in state.files.items() if path not in kept]
    names = [path.rpartition("/")[2] for path in vectors if path not in kept]
    known = snapshot.find_files(names)
    info: Json = {
        "timestamp": stamp_ms,
        "operation": "WRITE",
        "engineInfo": "Underlay",
        OURS: {
            "revision": revision,
            "version": snapshot.version,
            "commit_id": snapshot.root.commit_id,
            "schema": _fingerprint(choice),
            "left_out": sorted(choice.left_out),
        },
    }
    found: list[Json] = [{"commitInfo": info}]
    protocol = _protocol(choice, has_vectors=any(vectors.values()), before=state.protocol)
    if protocol != state.protocol:
        found.append({"protocol": protocol})
    metadata = _metadata(snapshot, choice, name, state)
    if metadata != state.metadata:
        found.append({"metaData": metadata})
    found += [remove_action(add["path"], add.get(_VECTOR), stamp_ms=stamp_ms) for add in gone]
    leaves = [leaf for field in choice.fields for leaf in leaves_in(field)]
    found += add_actions([known[name] for name in names], leaves, snapshot.schema, folder=revision, stamp_ms=stamp_ms)
    return found


def _files(snapshot: Snapshot) -> Iterator[tuple[str, Json | None]]:
    """The location of every file that has rows, and its deletion vector."""
    for part in snapshot.parts():
        segment = part.segment
        has_deletes = part.may_have_deletes(np.arange(segment.file_count)).tolist()
        rows = segment.file_rows.tolist()
        for row, location in enumerate(map(str, segment.locations.to_pylist())):
            if not rows[row] or (part.is_removed is not None and part.is_removed[row]):
                continue
            bits = part.deletes_of(row) if has_deletes[row] else None
            yield location, deletion_vector(bits) if bits else None


def _protocol(choice: DeltaChoice, *, has_vectors: bool, before: Json | None) -> Json:
    """Only what readers must know, so that as many as possible can; nothing that they once had to is taken back."""
    readers = {*((before or {}).get("readerFeatures") or ())}
    readers |= {_VECTORS} if has_vectors else set()
    readers |= {_NTZ} if choice.has_ntz else set()
    writers = {GUARD, *readers, *((before or {}).get("writerFeatures") or ())}
    writers |= {_INVARIANTS} if choice.has_required else set()
    found: dict[str, Json] = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7}
    if readers:
        found["readerFeatures"] = sorted(readers)
    return {**found, "writerFeatures": sorted(writers)}


def _metadata(snapshot: Snapshot, choice: DeltaChoice, name: str, state: ExportState) -> Json:
    """What the table is. Its id stays as long as the log does."""
    known = state.metadata or {}
    found: dict[str, Json] = {
        "id": known.get("id", snapshot.keys.folder.rpartition("/")[2]),
        "name": name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(choice.schema_json),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": known.get("createdTime", snapshot.root.committed_us // 1000),
    }
    if snapshot.definition.comment:
        found["description"] = snapshot.definition.comment
    return found

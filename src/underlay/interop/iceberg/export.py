"""Exports a version as an Iceberg table: manifests that are kept, those that are new, and the metadata that names them.

Nothing here is part of a commit. The metadata is put last and only if absent, so readers see one export or the next,
whole; whoever loses the race for a number starts again from the winner's.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from underlay.errors import Busy, Malformed, NotFound
from underlay.index import deletion_vectors as bitmaps
from underlay.index.segment.merge import MergedArrays, MergeInput
from underlay.index.segment.segment import Segment
from underlay.interop.exported.exported_version import Exported, not_exportable
from underlay.interop.exported.places import ExportPlaces
from underlay.interop.exported.settings import ICEBERG, ExportSettings, asked_json
from underlay.interop.iceberg.choose import Choice, choose
from underlay.interop.iceberg.columns.types import V3, Json
from underlay.interop.iceberg.folder import NONE, WarehouseFolder, manifest_list_of, properties_of
from underlay.interop.iceberg.objects.avro import Record, decode_records, encode_list, encode_manifest
from underlay.interop.iceberg.objects.data_manifest import (
    data_files,
    partition_summaries,
    partition_values,
)
from underlay.interop.iceberg.objects.deletions import (
    DeletedRows,
    NewObject,
    delete_entry,
    position_deletes,
    position_groups,
    puffin,
)
from underlay.interop.iceberg.objects.metadata import (
    ASKED,
    DELETIONS,
    FINGERPRINT,
    LEFT_OUT,
    NUMBER,
    VERSION,
    make_metadata,
)
from underlay.plan.part import Part
from underlay.runtime.threads import side_by_side
from underlay.schema.table_schema import leaves_in
from underlay.table.versions.snapshot import Snapshot

_ATTEMPTS = 20
_DATA, _DELETES = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergTarget:
    """Where a version is exported to."""

    folder: WarehouseFolder
    location: str
    """The URL of the table's folder for other engines."""
    places: ExportPlaces
    revision: str
    is_newest: bool
    """Whether only newer versions may replace the export that is there."""


@dataclass(slots=True, kw_only=True)
class _Base:
    """The newest export."""

    number: int
    metadata: Json | None
    properties: Mapping[str, str]
    manifests: Sequence[Record]
    is_ours: bool

    def find(self, prefix: str) -> Record | None:
        """A manifest by the beginning of its name."""
        for one in self.manifests:
            if _name(one["manifest_path"]).startswith(prefix):
                return one
        return None


def export_iceberg(
    snapshot: Snapshot, name: str, target: IcebergTarget, settings: ExportSettings, *, dry_run: bool
) -> Exported:
    """Export this version, unless the newest export is it already. Raises NotExportable, unless it is a dry run."""
    choice = choose(snapshot, settings)
    if choice.refusals and not dry_run:
        raise not_exportable(name, "an Iceberg table", choice.refusals)
    work = _Export(snapshot, target, choice, asked_json(settings))
    number, puts, notes = (None, 0, ()) if dry_run else work.run()
    return Exported(
        table=name,
        kind=ICEBERG,
        url=target.location,
        metadata_url=None if number is None else f"{target.location}/metadata/v{number}.metadata.json",
        version=snapshot.version,
        format=choice.schema.format,
        left_out=choice.left_out,
        refused=choice.refusals,
        notes=(*choice.notes, *notes),
        puts=puts,
        is_dry_run=dry_run,
    )


class _Export:
    """One export of one version."""

    def __init__(self, snapshot: Snapshot, target: IcebergTarget, choice: Choice, asked: str) -> None:
        self._snapshot, self._target, self._schema = snapshot, target, choice.schema
        self._folder, self._left_out, self._asked = target.folder, choice.left_out, asked
        self._root = snapshot.root
        given = f"{choice.schema.fingerprint} {target.places.base} {target.location}"
        self._fingerprint = blake2b(given.encode(), digest_size=8).hexdigest()
        self._identity = f"{target.revision}-{self._root.commit_id}-{self._fingerprint}"
        digest = blake2b(self._identity.encode(), digest_size=8).digest()
        self._snapshot_id = int.from_bytes(digest, "big") >> 1
        self._leaves = [leaf for one in choice.schema.fields for leaf in leaves_in(one)]
        self._puts = 0

    def run(self) -> tuple[int, int, tuple[str, ...]]:
        """The number of the export, how many objects were put, and notes."""
        for _ in range(_ATTEMPTS):
            base = self._read_base()
            notes = () if base.is_ours or base.number == NONE else (_foreign(base.number),)
            if base.is_ours and base.properties.get(FINGERPRINT) == self._identity:
                # whoever published it may have died before it put the hint
                self._folder.mend_hint(base.number, is_moved=self._folder.hinted() != base.number)
                return base.number, self._puts, notes
            if self._is_older_than(base):
                return base.number, self._puts, notes
            number = base.number + 1
            data = self._put_export(base, number)
            if self._folder.publish(number, data):
                self._puts += 2
                self._folder.mend_hint(number)
                return number, self._puts, notes
        raise Busy("other exporters were faster each time", place=self._target.location, hint="Try again later.")

    def _is_older_than(self, base: _Base) -> bool:
        """Whether another exporter was faster with a newer version."""
        if not self._target.is_newest or not base.is_ours or base.metadata is None:
            return False
        is_same = base.metadata.get("table-uuid") == self._target.revision
        return is_same and int(base.properties.get(VERSION, "-1")) > self._root.version

    def _read_base(self) -> _Base:
        number = self._folder.newest()
        metadata = self._folder.read(number) if number != NONE else None
        properties = properties_of(metadata) if isinstance(metadata, dict) else {}
        is_ours = properties.get(NUMBER) == str(number)
        manifests: Sequence[Record] = ()
        if is_ours and metadata is not None:
            manifests = self._records(manifest_list_of(metadata) or "")
        return _Base(number=number, metadata=metadata, properties=properties, manifests=manifests, is_ours=is_ours)

    def _records(self, url: str) -> Sequence[Record]:
        """The records of one of our objects; none if it is gone, as when someone deletes the folder."""
        key = self._folder.key(_name(url))
        try:
            return decode_records(self._folder.store.get(key)[0], self._folder.store.place_of(key))
        except (NotFound, Malformed):
            return ()

    def _put_export(self, base: _Base, number: int) -> bytes:
        """Put everything but the metadata, which is returned."""
        token = os.urandom(4).hex()
        manifests = [*self._data_manifests(base, number, token)]
        deletions = self._deletions_key()
        if deletions and base.properties.get(DELETIONS) == deletions:
            deletes = [one for one in base.manifests if one["content"] == _DELETES]
        else:
            deletes = self._delete_manifests(base, number, token) if deletions else []
        row_id = 0
        if self._schema.format >= V3:
            for one in manifests:
                one["first_row_id"] = row_id
                row_id += one["existing_rows_count"]
        list_name = self._folder.list_name(number, self._root.version, self._target.revision, token)
        self._put(
            NewObject(
                name=list_name,
                data=encode_list(
                    [*manifests, *deletes],
                    snapshot_id=self._snapshot_id,
                    sequence=number + 1,
                    format_version=self._schema.format,
                ),
            )
        )
        return make_metadata(
            self._root,
            self._schema,
            self._snapshot.schema,
            table_uuid=self._target.revision,
            location=self._target.location,
            number=number,
            snapshot_id=self._snapshot_id,
            manifest_list=self._url(list_name),
            totals=_totals(manifests, deletes, self._root.data_bytes),
            properties={
                FINGERPRINT: self._identity,
                DELETIONS: deletions,
                ASKED: self._asked,
                **({LEFT_OUT: json.dumps(sorted(self._left_out))} if self._left_out else {}),
            },
            first_row_id=row_id,
        )

    def _data_manifests(self, base: _Base, number: int, token: str) -> Iterator[Record]:
        for place, ref in enumerate(self._root.segments):
            gone = self._removed_from(place)
            crc = zlib.crc32(f"{self._fingerprint} {' '.join(sorted(gone))}".encode())
            prefix = f"m-{ref.id}-{crc:08x}-"
            known = base.find(prefix)
            if known is not None:
                yield dict(known)
                continue
            segment = self._snapshot.segment(place)
            is_kept = np.ones(segment.file_count, np.bool_)
            is_kept[list(gone.values())] = False
            arrays = MergedArrays([MergeInput(segment=segment, is_kept=is_kept)], self._snapshot.schema)
            yield from self._manifest(arrays, ref.spec, f"{prefix}{token}.avro", number)
        if self._root.tail:
            for at, (spec, entries) in enumerate(self._tail_by_spec().items()):
                yield from self._manifest(entries, spec, f"t-{at}-{token}.avro", number)

    def _tail_by_spec(self) -> dict[int, Segment]:
        """A commit that changes the partitioning flushes the tail, so it has files of one spec."""
        specs = dict.fromkeys(file.spec for file in self._root.tail)
        return {
            spec: Segment.of_entries([file for file in self._root.tail if file.spec == spec], self._snapshot.schema)
            for spec in specs
        }

    def _manifest(self, arrays: MergedArrays | Segment, spec: int, name: str, number: int) -> Iterator[Record]:
        partition = self._schema.specs[spec]
        keys, places = self._snapshot.keys, self._target.places
        found = data_files(
            arrays,
            self._leaves,
            partition,
            url_of=lambda location: places.of_file(keys, location),
            snapshot_id=self._snapshot_id,
        )
        if found.records:
            yield self._put_manifest(found.records, spec, name, number, _DATA)

    def _put_manifest(self, records: Sequence[Record], spec: int, name: str, number: int, content: int) -> Record:
        partition = self._schema.specs[spec]
        data = encode_manifest(
            records,
            partition,
            schema=self._schema.json,
            spec=spec,
            content="deletes" if content else "data",
            format_version=self._schema.format,
        )
        self._put(NewObject(name=name, data=data))
        return {
            "manifest_path": self._url(name),
            "manifest_length": len(data),
            "partition_spec_id": spec,
            "content": content,
            "sequence_number": number + 1,
            "min_sequence_number": min(record["sequence_number"] for record in records),
            "added_snapshot_id": self._snapshot_id,
            "added_files_count": 0,
            "existing_files_count": len(records),
            "deleted_files_count": 0,
            "added_rows_count": 0,
            "existing_rows_count": sum(record["data_file"]["record_count"] for record in records),
            "deleted_rows_count": 0,
            "partitions": partition_summaries(records, partition),
        }

    def _removed_from(self, place: int) -> dict[str, int]:
        """The rows of the files of a segment that the version no longer has."""
        if not self._root.removed:
            return {}
        return self._snapshot.rows_at(self._snapshot.segment(place), self._root.removed)

    def _deletions_key(self) -> str:
        """What all deletions were made of; empty without any. Reads no segment."""
        root = self._root
        own = [ref.id for ref in root.segments if ref.deleted_rows]
        tail = [(file.location, file.deletes) for file in root.tail if file.deletes is not None]
        if not own and not tail and not root.deletes:
            return ""
        digest = blake2b(f"{self._fingerprint} {own} {sorted(root.removed) if own else ()}".encode(), digest_size=8)
        for location, bits in (*sorted(root.deletes.items()), *tail):
            digest.update(f"{location}\0{len(bits)}\0".encode() + bits)
        return digest.hexdigest()

    def _delete_manifests(self, base: _Base, number: int, token: str) -> list[Record]:
        deleted = [one for part in self._snapshot.parts() for one in self._deleted_in(part)]
        by_spec: dict[int, list[Record]] = {}
        if self._schema.format >= V3:
            made, entries = puffin(
                deleted,
                name=f"p-{token}.puffin",
                url=self._url(f"p-{token}.puffin"),
                snapshot_id=self._snapshot_id,
                sequence=number + 1,
            )
            if deleted:
                self._put(made)
            for spec, entry in entries:
                by_spec.setdefault(spec, []).append(entry)
        else:
            known = self._known_positions(base)
            new: list[NewObject] = []
            for group in position_groups(deleted):
                spec = group.deleted[0].spec
                file = known.get(group.key)
                if file is None:
                    name = f"d-{group.key}-{token}.parquet"
                    made, file = position_deletes(group, name=name, url=self._url(name))
                    new.append(made)
                by_spec.setdefault(spec, []).append(delete_entry(file, self._snapshot_id, number + 1))
            side_by_side(self._put, new, self._folder.store.parallel_requests)
        return [
            self._put_manifest(entries, spec, f"x-{spec}-{token}.avro", number, _DELETES)
            for spec, entries in by_spec.items()
        ]

    def _known_positions(self, base: _Base) -> dict[str, Record]:
        """Files of position deletes that the newest export has, by their key."""
        records = [
            record["data_file"]
            for one in base.manifests
            if one["content"] == _DELETES
            for record in self._records(one["manifest_path"])
        ]
        return {_name(file["file_path"]).split("-")[1]: file for file in records if file["file_format"] == "PARQUET"}

    def _deleted_in(self, part: Part) -> Iterator[DeletedRows]:
        files = part.segment.files
        rows = sorted({*np.flatnonzero(files.deleted_rows > 0).tolist(), *part.deletes})
        if part.is_removed is not None:
            rows = [row for row in rows if not part.is_removed[row]]
        if not rows:
            return
        partitions: dict[int, list[Record]] = {}
        for row in rows:
            bits = part.deletes_of(row)
            spec = int(files.specs[row])
            if spec not in partitions:
                partitions[spec] = partition_values(part.segment, self._schema.specs[spec])
            if bits:
                yield DeletedRows(
                    url=self._target.places.of_file(self._snapshot.keys, str(files.locations[row])),
                    bits=bits,
                    count=bitmaps.count(bits),
                    spec=spec,
                    partition=partitions[spec][row],
                )

    def _put(self, made: NewObject) -> None:
        self._folder.store.put(self._folder.key(made.name), made.data)
        self._puts += 1

    def _url(self, name: str) -> str:
        return f"{self._target.location}/metadata/{name}"


def _totals(manifests: Sequence[Record], deletes: Sequence[Record], data_bytes: int) -> dict[str, int]:
    return {
        "total-data-files": sum(one["existing_files_count"] for one in manifests),
        "total-records": sum(one["existing_rows_count"] for one in manifests),
        "total-files-size": data_bytes,
        "total-delete-files": sum(one["existing_files_count"] for one in deletes),
        "total-position-deletes": sum(one["existing_rows_count"] for one in deletes),
        "total-equality-deletes": 0,
    }


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def _foreign(number: int) -> str:
    return (
        f"v{number}.metadata.json was not written by Underlay: somebody wrote to the export."
        " What they wrote is not in the table; this export replaces it."
    )

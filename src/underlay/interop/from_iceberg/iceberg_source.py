"""An Iceberg table as a source: its newest snapshot, from its folder or from a REST catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deflate import crc32

from underlay.errors import UnderlayError
from underlay.interop.from_iceberg.columns import IcebergColumns, partition_scalar
from underlay.interop.from_iceberg.deleted_rows import IcebergDeletes
from underlay.interop.from_iceberg.manifests import (
    DATA,
    EQUALITY_DELETES,
    IcebergFile,
    live_files,
    need_fastavro,
    place_of,
)
from underlay.interop.from_iceberg.metadata import IcebergMetadata, decode_metadata, newest_metadata, table_folder
from underlay.interop.from_iceberg.rest import load_table
from underlay.interop.imports.registered import ImportedFile
from underlay.interop.imports.source_folder import SourceFolder, found_file
from underlay.interop.imports.source_table import ConstantRule, SourceFile, SourceMark, SourceTable, Values
from underlay.interop.imports.take_files import not_importable
from underlay.runtime.locks import cached_property
from underlay.scan.read.file_stores import FileStores
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar

_NEWEST_FORMAT = 3
_FORMATS = ("PARQUET", "PUFFIN")


class IcebergSource:
    """The Iceberg table in a folder, or that a metadata file describes; later, the newest of that folder."""

    kind = "iceberg"

    def __init__(self, address: str, stores: FileStores) -> None:
        need_fastavro()
        self._stores = stores
        folder, self._file = table_folder(address)
        self._folder = SourceFolder(folder, stores)
        self.url = self._folder.url

    @cached_property
    def _loaded(self) -> tuple[IcebergMetadata, str]:
        """The metadata, and its stamp."""
        path = self._file or newest_metadata(self._folder)
        data = bytes(self._folder.get(path))
        return decode_metadata(data, f"{self.url}/{path}"), f"crc {crc32(data):08x}"

    def newest(self) -> SourceMark:
        """See TableSource."""
        metadata, stamp = self._loaded
        return SourceMark(0 if metadata.snapshot is None else metadata.snapshot.snapshot_id, stamp)

    def contradiction(self, known: SourceMark) -> str | None:
        """See TableSource. The snapshot that was imported must be before the newest one, unless it expired."""
        metadata = self._loaded[0]
        if known.version == 0 or known.version in metadata.ancestors():
            return None
        if known.version not in metadata.by_id and metadata.snapshot is not None:
            return None
        return "was rolled back: its newest snapshot does not come after the one that was imported"

    def read(self, have: Mapping[str, ImportedFile], schema: TableSchema | None) -> SourceTable:
        """See TableSource."""
        metadata = self._loaded[0]
        if metadata.format_version > _NEWEST_FORMAT:
            raise not_importable([f"It has format {metadata.format_version}; this release knows {_NEWEST_FORMAT}."])
        columns = IcebergColumns(metadata.current_schema, metadata.properties)
        problems = columns.columns.problems
        files = self._live(metadata)
        problems += list(dict.fromkeys(_unreadable(files)))
        deletes = IcebergDeletes(files, self._stores)
        data = [one for one in files if one.content == DATA]
        values = _Constants(metadata, columns, problems)
        source_files = [
            SourceFile(
                found=found_file(place_of(one.path, self._stores), self._stores),
                size_bytes=one.size_bytes,
                values=values.of(one),
                deletes=deletes.identity(one),
            )
            for one in data
        ]
        if problems:
            raise not_importable(list(dict.fromkeys(problems)))
        by_location = {file.found.location: one for file, one in zip(source_files, data, strict=True)}

        def load_deletes(some: Sequence[SourceFile]) -> Mapping[str, bytes]:
            return deletes.read({one.found.location: by_location[one.found.location] for one in some})

        return SourceTable(
            table_id=metadata.table_uuid,
            mark=self.newest(),
            columns=columns.columns,
            files=source_files,
            constants=ConstantRule.FILLS,
            by_ids=True,
            by_names=columns.has_names,
            load_deletes=load_deletes,
            comment=metadata.properties.get("comment"),
        )

    def _live(self, metadata: IcebergMetadata) -> list[IcebergFile]:
        if metadata.snapshot is None:
            return []
        if metadata.snapshot.manifest_list is None:
            raise not_importable(["Its snapshot has no manifest list, as in the first tables of Iceberg."])
        return live_files(metadata.snapshot.manifest_list, self._stores)


class IcebergRestSource(IcebergSource):
    """The table that a REST catalog names."""

    kind = "iceberg+rest"

    def __init__(self, address: str, stores: FileStores) -> None:
        need_fastavro()
        self._stores = stores
        self.url = address

    @cached_property
    def _loaded(self) -> tuple[IcebergMetadata, str]:
        data, location = load_table(self.url)
        return decode_metadata(data, location), f"crc {crc32(data):08x}"


class _Constants:
    """Values of identity partitions, for files that lack these columns."""

    def __init__(self, metadata: IcebergMetadata, columns: IcebergColumns, problems: list[str]) -> None:
        self._problems = problems
        top = {one.id: one.type for one in columns.columns.fields}
        self._fields: dict[int, dict[int, tuple[int, Scalar, str]]] = {}
        self._known: dict[tuple[int, str], Values] = {}
        for spec in metadata.partition_specs:
            of_spec = self._fields.setdefault(spec.spec_id, {})
            for one in spec.fields:
                number = columns.ids.get(one.source_id)
                if one.transform == "identity" and number is not None:
                    type_ = top.get(number)
                    if isinstance(type_, Scalar):
                        of_spec[one.field_id] = (number, type_, one.name)
                    else:
                        problems.append(f"Partition field {one.name}: it is a part of a nested column.")

    def of(self, file: IcebergFile) -> Values:
        """The values of a file."""
        key = file.spec, repr(file.partition)
        if key not in self._known:
            self._known[key] = tuple(self._values(file))
        return self._known[key]

    def _values(self, file: IcebergFile) -> Values:
        found = []
        for ident, (number, type_, name) in self._fields.get(file.spec, {}).items():
            if ident not in file.partition:
                continue
            try:
                found.append((number, partition_scalar(file.partition[ident], type_)))
            except UnderlayError as error:
                self._problems.append(f"Partition field {name}: {error.problem}.")
        return tuple(found)


def _unreadable(files: Sequence[IcebergFile]) -> list[str]:
    reasons = [f"{one.path}: it is {one.format}, not Parquet." for one in files if one.format not in _FORMATS]
    reasons += [
        f"{one.path}: it deletes rows by their values (equality deletes), which needs a compaction in the source first."
        for one in files
        if one.content == EQUALITY_DELETES
    ]
    return reasons

"""A Delta table as a source: its newest version, checked for what a reader must know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from underlay.errors import InvalidRequest
from underlay.interop.from_delta.columns import DeltaColumns, partition_value
from underlay.interop.from_delta.deleted_rows import read_vectors
from underlay.interop.from_delta.log import Add, DeltaLog, LogState
from underlay.interop.imports.registered import ImportedFile
from underlay.interop.imports.source_folder import SourceFolder, found_file, locate_uri
from underlay.interop.imports.source_table import ConstantRule, SourceFile, SourceMark, SourceTable, Values
from underlay.interop.imports.take_files import not_importable
from underlay.runtime.locks import cached_property
from underlay.scan.read.file_stores import FileStores
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar

KNOWN_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_NEWEST_READER = 3


class DeltaSource:
    """The Delta table in a folder."""

    kind = "delta"

    def __init__(self, address: str, stores: FileStores) -> None:
        self._folder = SourceFolder(address, stores)
        self.url = self._folder.url

    @cached_property
    def _log(self) -> DeltaLog:
        return DeltaLog(self._folder)

    @cached_property
    def _state(self) -> LogState:
        return self._log.read()

    def newest(self) -> SourceMark:
        """See TableSource."""
        return SourceMark(self._log.version, self._log.stamp(self._log.version))

    def contradiction(self, known: SourceMark) -> str | None:
        """See TableSource."""
        if self._log.version < known.version:
            return "was rolled back: its newest version is older than the one that was imported"
        stamp = self._log.stamp(known.version)
        if stamp is None or known.stamp is None or stamp == known.stamp:
            return None
        return "has another history: it was rolled back or restored from a copy, and then changed"

    def read(self, have: Mapping[str, ImportedFile], schema: TableSchema | None) -> SourceTable:
        """See TableSource."""
        state = self._state
        problems = _unknown(state)
        mode = state.metadata.configuration.get("delta.columnMapping.mode", "none")
        if mode not in ("none", "name", "id"):
            problems.append(f"Its columns are mapped by {mode}, which this release does not know.")
        columns = DeltaColumns(state.metadata.schema_string, is_mapped=mode != "none", place=self.url)
        partitions = columns.partition_columns(state.metadata.partition_columns)
        if state.metadata.format.provider != "parquet":
            problems.append(f"Its files are {state.metadata.format.provider}, not Parquet.")
        problems += columns.columns.problems
        files, wrong = self._files(state, partitions)
        problems += wrong
        if problems:
            raise not_importable(problems)
        vectors = {
            file.found.location: add.deletion_vector
            for file, add in zip(files, state.files, strict=True)
            if add.deletion_vector is not None
        }

        def load_deletes(some: Sequence[SourceFile]) -> Mapping[str, bytes]:
            return read_vectors(self._folder, {one.found.location: vectors[one.found.location] for one in some})

        return SourceTable(
            table_id=state.metadata.id,
            mark=self.newest(),
            columns=columns.columns,
            partition_by=state.metadata.partition_columns,
            files=files,
            constants=ConstantRule.REPLACES,
            by_ids=mode == "id",
            by_names=mode != "id",
            load_deletes=load_deletes,
            comment=state.metadata.description,
        )

    def _files(
        self, state: LogState, partitions: Mapping[str, tuple[int, Scalar]]
    ) -> tuple[list[SourceFile], list[str]]:
        values: dict[tuple[tuple[str, str | None], ...], Values] = {}
        problems: dict[str, None] = {}
        files = []
        for add in state.files:
            key = tuple(add.partition_values.items())
            if key not in values:
                values[key] = _values(add, partitions, problems)
            place = locate_uri(add.path, self._folder.stores, is_quoted=True)
            files.append(
                SourceFile(
                    found=self._folder.found(unquote(add.path))
                    if place is None
                    else found_file(place, self._folder.stores),
                    size_bytes=add.size,
                    values=values[key],
                    deletes=None if add.deletion_vector is None else add.deletion_vector.unique_id,
                )
            )
        return files, list(problems)


def _values(add: Add, partitions: Mapping[str, tuple[int, Scalar]], problems: dict[str, None]) -> Values:
    found = []
    for name, (ident, type_) in partitions.items():
        try:
            found.append((ident, partition_value(add.partition_values.get(name), type_)))
        except InvalidRequest as error:
            problems[f"Partition column {name}: {error.problem} ({error.found})."] = None
    return tuple(found)


def _unknown(state: LogState) -> list[str]:
    protocol = state.protocol
    if protocol.min_reader_version > _NEWEST_READER:
        return [f"It needs a reader of version {protocol.min_reader_version}; this release is {_NEWEST_READER}."]
    strange = sorted(set(protocol.reader_features or ()) - KNOWN_FEATURES)
    return [f"It uses the feature {name}, which this release does not know." for name in strange]

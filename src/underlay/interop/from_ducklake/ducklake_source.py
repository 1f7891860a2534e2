"""A table of DuckLake as a source: its newest snapshot."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.change.register.find_files import FoundFile
from underlay.errors import InvalidRequest, Malformed, NotFound
from underlay.index import deletion_vectors as bitmaps
from underlay.interop.from_ducklake.catalog import DuckLakeTable, Row, read_table, split_address
from underlay.interop.imports.registered import ImportedFile
from underlay.interop.imports.source_columns import ELEMENT, KEY, VALUE, ColumnName, SourceColumns
from underlay.interop.imports.source_folder import SourceFolder, found_file, locate_uri
from underlay.interop.imports.source_table import ConstantRule, SourceFile, SourceMark, SourceTable, Values
from underlay.interop.imports.take_files import not_importable
from underlay.runtime.locks import cached_property
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_stores import FileStores
from underlay.schema.convert.default import format_default
from underlay.schema.convert.path_values import path_scalar, path_values
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_UTC = "UTC"
_PLAIN = {
    "boolean": Scalar(TypeKind.BOOLEAN),
    **{kind.value: Scalar(kind) for kind in TypeKind if kind.value.startswith(("int", "uint"))},
    "float32": Scalar(TypeKind.FLOAT32),
    "float64": Scalar(TypeKind.FLOAT64),
    "date": Scalar(TypeKind.DATE),
    "time": Scalar(TypeKind.TIME, unit="us"),
    "timestamp": Scalar(TypeKind.TIMESTAMP, unit="us"),
    "timestamp_us": Scalar(TypeKind.TIMESTAMP, unit="us"),
    "timestamp_ms": Scalar(TypeKind.TIMESTAMP, unit="ms"),
    "timestamp_ns": Scalar(TypeKind.TIMESTAMP, unit="ns"),
    "timestamptz": Scalar(TypeKind.TIMESTAMP, unit="us", zone=_UTC),
    "varchar": Scalar(TypeKind.STRING),
    "json": Scalar(TypeKind.STRING),
    "blob": Scalar(TypeKind.BINARY),
    "uuid": Scalar(TypeKind.UUID),
}
_READERS = 4


class DuckLakeSource:
    """A table of the catalog in a file."""

    kind = "ducklake"

    def __init__(self, address: str, stores: FileStores) -> None:
        self._path, self._schema, self._table = split_address(address)
        self._stores = stores
        self.url = address

    @cached_property
    def _found(self) -> DuckLakeTable:
        return read_table(self._path, self._schema, self._table)

    def newest(self) -> SourceMark:
        """See TableSource."""
        return SourceMark(self._found.snapshot, self._found.uuid)

    def contradiction(self, known: SourceMark) -> str | None:
        """See TableSource. Snapshots of DuckLake are never taken back; an older catalog is a copy."""
        if self._found.snapshot < known.version:
            return "was rolled back: its newest snapshot is older than the one that was imported"
        return None

    def read(self, have: Mapping[str, ImportedFile], schema: TableSchema | None) -> SourceTable:
        """See TableSource."""
        found = self._found
        columns = _Columns(found)
        problems = columns.columns.problems
        if found.encrypted or any(row[5] for row in (*found.files, *found.deletes)):
            problems.append("Its files are encrypted.")
        if found.inlined:
            problems.append("Rows of it lie in the catalog: flush them first (CALL ducklake_flush_inlined_data(…)).")
        problems += [f"{path}: it is {kind}, not Parquet." for _, path, _, kind, *_ in found.files if kind != "parquet"]
        problems += [
            f"{path}: it is {kind}, not Parquet." for _, path, _, kind, *_ in found.deletes if kind != "parquet"
        ]
        if problems:
            raise not_importable(problems)
        places = {row[0]: self._file(row[1], row[2]) for row in found.files}
        deletes = {row[0]: row for row in found.deletes}
        values = _PathValues(found, columns, problems)
        files = [
            SourceFile(
                found=places[row[0]],
                size_bytes=row[4],
                values=values.of(places[row[0]], row[6]),
                deletes=deletes[row[0]][1] if row[0] in deletes else None,
            )
            for row in found.files
        ]
        if problems:
            raise not_importable(list(dict.fromkeys(problems)))
        ids = {places[ident].location: ident for ident in places}

        def load_deletes(some: Sequence[SourceFile]) -> Mapping[str, bytes]:
            names = [one.found.location for one in some]
            return dict(side_by_side(lambda name: (name, self._deleted(deletes[ids[name]])), names, _READERS))

        return SourceTable(
            table_id=found.uuid,
            mark=self.newest(),
            columns=columns.columns,
            files=files,
            constants=ConstantRule.FILLS,
            by_ids=True,
            by_names=bool(found.names),
            load_deletes=load_deletes,
        )

    def _file(self, path: str, is_relative: bool) -> FoundFile:
        if not is_relative:
            place = locate_uri(path, self._stores)
            if place is not None:
                return found_file(place, self._stores)
        return self._folder.found(path)

    @cached_property
    def _folder(self) -> SourceFolder:
        return SourceFolder(self._found.folder.rstrip("/"), self._stores)

    def _deleted(self, row: Row) -> bytes:
        """The rows that a file deletes. Raises NotFound, Malformed."""
        found = self._file(row[1], row[2])
        try:
            data = found.place.store.get(found.place.key)[0]
            positions = pq.read_table(io.BytesIO(data), columns=["pos"], partitioning=None).column("pos")
        except NotFound as error:
            error.problem = f"a file of deleted rows of the source is missing: {error.problem}"
            raise
        except pa.ArrowException as error:
            raise Malformed(f"not a file of deleted rows: {error}", place=found.location) from error
        return bitmaps.pack(positions.to_numpy())


class _Columns:
    """The columns, with the ids of DuckLake, which files have too. `ids` are provisional ids by these."""

    def __init__(self, found: DuckLakeTable) -> None:
        self.columns = SourceColumns()
        self.ids: dict[int, int] = {}
        self._children: dict[int | None, list[Row]] = {}
        for row in found.columns:
            self._children.setdefault(row[5], []).append(row)
        self._names: dict[int, list[str]] = {}
        for _, name, target, is_partition in found.names:
            if not is_partition and name not in self._names.setdefault(target, []):
                self._names[target].append(name)
        self.columns.fields = [self._field(row, "") for row in self._children.get(None, [])]

    def _field(self, row: Row, above: str, name: str | None = None) -> Field:
        ident, own, kind, default, may_be_null, _ = row
        path = f"{above}{own}"
        number = self.columns.number(
            ColumnName(key=f"#{ident}", source_id=ident, names=tuple(self._names.get(ident, ())))
        )
        self.ids[ident] = number
        type_ = self._type(kind, ident, path)
        return Field(
            id=number,
            name=name or own,
            type=type_,
            is_required=name == KEY or (not above and not may_be_null and isinstance(type_, Scalar)),
            default=self._default(default, type_, path),
        )

    def _type(self, kind: str, ident: int, path: str) -> Type:
        parts = self._children.get(ident, [])
        match kind, parts:
            case "struct", _:
                return StructOf(tuple(self._field(part, f"{path}.") for part in parts))
            case "list", [element]:
                return ListOf(self._field(element, f"{path}.", ELEMENT))
            case "map", [key, value]:
                return MapOf(self._field(key, f"{path}.", KEY), self._field(value, f"{path}.", VALUE))
        found = _PLAIN.get(kind)
        if found is None and (match := _DECIMAL.fullmatch(kind)) is not None:
            found = Scalar(TypeKind.DECIMAL, precision=int(match[1]), scale=int(match[2]))
        return found if found is not None else self.columns.refuse(path, f"Underlay has no type {kind}")

    def _default(self, text: str | None, type_: Type, path: str) -> str | None:
        if text is None or text == "NULL":
            return None
        try:
            if isinstance(type_, Scalar):
                return format_default(text, type_)
        except InvalidRequest:
            pass
        self.columns.refuse(path, f"rows of older files have the default {text!r}, which {type_} cannot have here")
        return None


class _PathValues:
    """Values in the paths of files that were added to DuckLake with Hive partitions."""

    def __init__(self, found: DuckLakeTable, columns: _Columns, problems: list[str]) -> None:
        self._problems = problems
        types = {one.id: one.type for one in columns.columns.fields}
        self._columns: dict[int, dict[str, tuple[int, Type]]] = {}
        for mapping, name, target, is_partition in found.names:
            number = columns.ids.get(target)
            if is_partition and number in types:
                self._columns.setdefault(mapping, {})[name] = (number, types[number])

    def of(self, file: FoundFile, mapping: int | None) -> Values:
        """The values of a file."""
        wanted = {} if mapping is None else self._columns.get(mapping, {})
        if not wanted:
            return ()
        texts = dict(path_values(file.path))
        values = []
        for name, (number, type_) in wanted.items():
            text = texts.get(name)
            try:
                is_null = text is None or not isinstance(type_, Scalar)
                values.append((number, None if is_null else path_scalar(text, type_)))
            except InvalidRequest:
                self._problems.append(f"{file.location}: {name} is {text!r} in the path, not one of {type_}.")
        return tuple(values)

"""A folder of Parquet files as a source: columns of the files, and constants from folders such as `year=2024`.

It has no versions: its listing is compared. Files are matched by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from underlay.change.register.find_files import FoundFile
from underlay.errors import InvalidRequest, NotFound
from underlay.interop.from_hive.file_columns import (
    columns_of_schema,
    distinct_schemas,
    numbered,
    together,
    without_ids,
)
from underlay.interop.imports.registered import ImportedFile
from underlay.interop.imports.source_folder import SourceFolder
from underlay.interop.imports.source_table import ConstantRule, SourceFile, SourceMark, SourceTable, Values
from underlay.interop.imports.take_files import not_importable, read_source_files
from underlay.runtime.locks import cached_property
from underlay.scan.read.file_stores import FileStores
from underlay.schema.convert.path_values import NULL_FOLDER, infer_type, path_scalar, path_values
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar

_ID_BYTES = 16


class HiveSource:
    """All Parquet files below a folder, but for hidden ones."""

    kind = "hive"

    def __init__(self, address: str, stores: FileStores) -> None:
        self._folder = SourceFolder(address, stores)
        self._stores = stores
        self.url = self._folder.url

    @cached_property
    def _files(self) -> Sequence[SourceFile]:
        found = []
        for path, described in sorted(self._folder.objects(), key=lambda one: one[0]):
            parts = path.split("/")
            _refuse_others(self.url, path)
            if parts[-1].endswith((".parquet", ".parq")) and not any(one.startswith(("_", ".")) for one in parts):
                one = self._folder.found(path)
                found.append(SourceFile(found=one, size_bytes=described.size_bytes, etag=described.etag))
        if not found:
            raise NotFound("no Parquet file is in the folder", place=self.url)
        return found

    def newest(self) -> SourceMark:
        """See TableSource."""
        digest = blake2b(digest_size=_ID_BYTES)
        for one in self._files:
            digest.update(f"{one.found.location} {one.size_bytes} {one.etag}\n".encode())
        return SourceMark(0, digest.hexdigest())

    def contradiction(self, known: SourceMark) -> str | None:
        """See TableSource. A folder has no history."""
        return None

    def read(self, have: Mapping[str, ImportedFile], schema: TableSchema | None) -> SourceTable:
        """See TableSource. Reads the footers of files that are new or changed."""
        new = [one for one in self._files if not _is_known(one, have)]
        reads = read_source_files(new, None)
        problems: list[str] = []
        known = {} if schema is None else {one.name: one for one in schema.fields}
        paths = [self._values(one.found) for one in self._files]
        partitions = _partition_types(paths, known)
        own = tuple(without_ids(one) for name, one in known.items() if name not in partitions)
        for found, place in distinct_schemas(reads):
            own = together(own, columns_of_schema(found, problems), problems, place)
        columns = numbered([*(one for one in own if one.name not in partitions), *_fields(partitions)])
        problems += columns.problems
        ids = {name: one.id for name, one in columns.by_name().items()}
        cache: dict[tuple[tuple[str, str | None], ...], Values] = {}
        files = []
        for one, values in zip(self._files, paths, strict=True):
            if values not in cache:
                cache[values] = _constants(values, partitions, ids, problems)
            files.append(SourceFile(found=one.found, size_bytes=one.size_bytes, etag=one.etag, values=cache[values]))
        if problems:
            raise not_importable(list(dict.fromkeys(problems)))
        return SourceTable(
            table_id="",
            mark=self.newest(),
            columns=columns,
            partition_by=tuple(partitions),
            files=files,
            constants=ConstantRule.EQUALS,
            by_ids=False,
            by_names=True,
            load_deletes=lambda _: {},
            reads={one.found.location: read for one, read in zip(new, reads, strict=True)},
        )

    def _values(self, found: FoundFile) -> tuple[tuple[str, str | None], ...]:
        inside = found.place.key.removeprefix(self._folder.place("").key)
        return path_values(inside)


def _refuse_others(url: str, path: str) -> None:
    """A table of Delta Lake or Iceberg has files in its folder that are no longer part of it."""
    kind = None
    if path.startswith("_delta_log/"):
        kind = "delta"
    elif path.startswith("metadata/") and path.endswith(".metadata.json"):
        kind = "iceberg"
    if kind is not None:
        raise InvalidRequest(
            f"the folder is a table of {kind.capitalize()}: not all of its files are part of it",
            place=url,
            found=path,
            hint=f"Import it as {kind}:{url}",
        )


def _is_known(file: SourceFile, have: Mapping[str, ImportedFile]) -> bool:
    known = have.get(file.found.location)
    return known is not None and (known.size_bytes, known.etag) == (file.size_bytes, file.etag)


def _partition_types(
    paths: Sequence[tuple[tuple[str, str | None], ...]], known: Mapping[str, Field]
) -> dict[str, Scalar]:
    """The columns in paths with their types: those of the table, or what all values are."""
    texts: dict[str, set[str | None]] = {}
    for values in paths:
        for name, text in values:
            texts.setdefault(name, set()).add(text)
    found = {}
    for name, every in texts.items():
        type_ = known[name].type if name in known else None
        found[name] = type_ if isinstance(type_, Scalar) else infer_type(every)
    return found


def _constants(
    values: tuple[tuple[str, str | None], ...],
    partitions: Mapping[str, Scalar],
    ids: Mapping[str, int],
    problems: list[str],
) -> Values:
    found = []
    for name, text in values:
        try:
            found.append((ids[name], None if text is None else path_scalar(text, partitions[name])))
        except InvalidRequest:
            problems.append(f"Column {name} is {partitions[name]} in the table and {text!r} in a path.")
    missing = partitions.keys() - {name for name, _ in values}
    if missing:
        problems.append(
            f"Some files have no folder for {', '.join(sorted(missing))}, which others have (a null is {NULL_FOLDER})."
        )
    return tuple(found)


def _fields(partitions: Mapping[str, Scalar]) -> list[Field]:
    return [Field(id=0, name=name, type=type_) for name, type_ in partitions.items()]

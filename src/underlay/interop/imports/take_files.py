"""Turns the files of a table of another system into files of ours: their footers are read, nothing is copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from underlay.change.files.add_files import add_segment_files
from underlay.change.register.check_rows import check_rows
from underlay.change.register.partition_values import partition_values
from underlay.change.register.path_constants import Constants, given_fields, with_constants
from underlay.change.register.read_footers import Progress, ReadFile, join_files, read_footers, read_groups
from underlay.errors import InvalidRequest, Malformed, NotFound, Unsupported
from underlay.index import deletion_vectors as bitmaps
from underlay.index.constants import constant_of
from underlay.index.entry import FileConstant, FileLayout
from underlay.index.intake.constant_files import ConstantFiles
from underlay.index.intake.entries import ManyFiles, read_files
from underlay.index.intake.schema_match import Misfit
from underlay.index.keys import again
from underlay.index.root import Definition
from underlay.index.segment.segment import Segment
from underlay.index.segment.subset import DeletedFiles, PartitionedFiles
from underlay.interop.imports.source_columns import NumberedColumns
from underlay.interop.imports.source_table import ConstantRule, SourceFile, SourceTable
from underlay.scan.read.file_stores import FileStores
from underlay.schema.arrow_aliases import AnyScalar
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.snapshot import Snapshot

_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class TakenFiles:
    """Files that fit a table. `deletes` are those of files that have deleted rows, by location."""

    segment: Segment
    layouts: tuple[FileLayout, ...]
    deletes: Mapping[str, bytes]


def read_source_files(files: Sequence[SourceFile], progress: Progress | None) -> list[ReadFile]:
    """The footers of these files. Raises NotFound with what to do about it for one that is gone."""
    if not files:
        return []
    try:
        reads = read_footers([one.found for one in files], progress)
    except NotFound as error:
        error.problem = f"a file of the source is missing: {error.problem}"
        error.hint = (
            "The source's own metadata names it, so it was deleted behind its back, or the source changed meanwhile "
            "(VACUUM, expire_snapshots). Sync again, or repair the source."
        )
        raise
    wrong = [
        f"{one.found.location}: it has {read.place.size_bytes} bytes, and {one.size_bytes} by the source's metadata."
        for one, read in zip(files, reads, strict=True)
        if one.size_bytes is not None and one.size_bytes != read.place.size_bytes
    ]
    if wrong:
        raise not_importable(wrong, "Something replaced the files of the source.")
    return reads


def take_files(
    source: SourceTable, columns: NumberedColumns, files: Sequence[SourceFile], reads: Sequence[ReadFile]
) -> TakenFiles | None:
    """The files as ours; None for none. Raises Unsupported with the reasons of each file that does not fit."""
    if not files:
        return None
    deletes = source.load_deletes([one for one in files if one.deletes is not None])
    constants = _constants(files, columns)
    problems, read = _read(source.constants, columns, reads, constants)
    if not read.alike:
        raise _misfits(problems, reads)
    schema = columns.schema
    segment, indices = join_files(read.alike, schema)
    kept = [constants[index] for index in indices]
    if source.constants is ConstantRule.EQUALS:
        segment, contradictions = with_constants(segment, kept, schema)
        problems = {indices[row]: misfit for row, misfit in contradictions.items()} | problems
    else:
        if source.constants is ConstantRule.FILLS:
            kept = _absent(segment, kept)
        if any(kept):
            segment = Segment(ConstantFiles(segment, kept, schema), segment.file_count)
    if problems:
        raise _misfits(problems, reads)
    bits = [deletes.get(files[index].found.location) for index in indices]
    if any(bits):
        _check_bits(segment, bits)
        segment = Segment(DeletedFiles(segment, bits), segment.file_count)
    return TakenFiles(segment=segment, layouts=read.layouts, deletes=deletes)


def add_taken(transaction: Transaction, taken: TakenFiles, definition: Definition, stores: FileStores) -> None:
    """Add the files to a table that has, or will have, this definition. Raises Unsupported, SchemaMismatch."""
    segment, schema = taken.segment, from_record(definition.schema)
    if definition.partition_by or definition.spec:
        values = partition_values(segment, definition, schema)
        wrong = {row: one for row, one in enumerate(values) if isinstance(one, Misfit)}
        if wrong:
            names = segment.locations.to_pylist()
            raise not_importable([f"{names[row]}: {' '.join(one.reasons)}" for row, one in wrong.items()], _PARTITIONS)
        partitions = [() if isinstance(one, Misfit) else one for one in values]
        segment = Segment(PartitionedFiles(segment, partitions, definition.spec), segment.file_count)
    if definition.checks:
        base = transaction.snapshot
        root = with_fields(base.root, definition=definition)
        check_rows(Snapshot(base.store, base.keys, root, base.load_segment), segment, taken.layouts, stores)
    add_segment_files(transaction, segment, taken.layouts, definition)


_PARTITIONS = "Remove the table's partitioning: alter_table(partition_by=[]), or import into a table without."


def placed(reads: Sequence[ReadFile], version: int) -> list[ReadFile]:
    """Files that may have been part of the table before, with locations that no version uses for other bytes."""
    return [replace(read, place=replace(read.place, location=again(read.place.location, version))) for read in reads]


def not_importable(reasons: Sequence[str], hint: str | None = None) -> Unsupported:
    """The error with all reasons."""
    shown = "\n  ".join(reasons[:_SHOWN])
    more = f"\n  … and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    return Unsupported(f"the table cannot be imported as it is; nothing was changed:\n  {shown}{more}", hint=hint)


def _misfits(problems: Mapping[int, Misfit], reads: Sequence[ReadFile]) -> Unsupported:
    return not_importable(
        [f"{reads[index].place.location}: {' '.join(problems[index].reasons)}" for index in sorted(problems)]
    )


def _constants(files: Sequence[SourceFile], columns: NumberedColumns) -> list[Constants]:
    """The constants of each file, by final ids. Raises Unsupported."""
    by_id = {one.id: one for one in columns.schema.fields}
    known: dict[tuple[int, AnyScalar | None], FileConstant] = {}
    problems: dict[str, None] = {}

    def constant(ident: int, value: AnyScalar | None) -> FileConstant | None:
        column: Field = by_id[columns.ids[ident]]
        found = known.get((ident, value))
        if found is None:
            if value is None and column.is_required:
                problems[f"Column {column.name} is required, and null for all rows of a file."] = None
                return None
            try:
                found = known[ident, value] = constant_of(column, value)
            except InvalidRequest as error:
                problems[f"Column {column.name} cannot have the constant {value}: {error.problem}."] = None
        return found

    every = [
        tuple(one for ident, value in file.values if (one := constant(ident, value)) is not None) for file in files
    ]
    if problems:
        raise not_importable(list(problems))
    return every


def _read(
    rule: ConstantRule, columns: NumberedColumns, reads: Sequence[ReadFile], constants: Sequence[Constants]
) -> tuple[dict[int, Misfit], ManyFiles]:
    """Match the files with the columns, those alike together."""
    groups: dict[tuple[frozenset[int], frozenset[int]], list[int]] = {}
    for index, of_file in enumerate(constants):
        hidden = frozenset(one.field for one in of_file) if rule is ConstantRule.REPLACES else frozenset[int]()
        groups.setdefault((hidden, given_fields(of_file)), []).append(index)

    def read_some(group: tuple[frozenset[int], frozenset[int]], indices: Sequence[int]) -> ManyFiles:
        hidden, given = group
        fields = tuple(one for one in columns.schema.fields if one.id not in hidden)
        return read_files(
            [reads[index].footer for index in indices],
            [reads[index].place for index in indices],
            TableSchema(fields=fields, last_id=columns.schema.last_id),
            by=columns.naming,
            ignore_surplus=True,
            given=given,
        )

    found = read_groups(groups, read_some)
    return dict(found.misfits), found


def _absent(segment: Segment, constants: Sequence[Constants]) -> list[Constants]:
    """The constants whose columns the files lack."""
    fields = {one.field for of_file in constants for one in of_file}
    has_column = {field: segment.columns_of(field) >= 0 for field in fields}
    return [tuple(one for one in of_file if not has_column[one.field][row]) for row, of_file in enumerate(constants)]


def _check_bits(segment: Segment, bits: Sequence[bytes | None]) -> None:
    names = segment.locations.to_pylist()
    for name, rows, found in zip(names, segment.file_rows.tolist(), bits, strict=True):
        if found is not None:
            try:
                bitmaps.check(found, rows)
            except Malformed as error:
                raise error.at(str(name)) from None

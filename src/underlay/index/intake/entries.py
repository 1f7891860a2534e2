"""Turns footers into entries of the index: whether a file fits the table, whether it can be read, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from deflate import crc32

from underlay.errors import SchemaMismatch, UnderlayError
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.intake.schema_match import By, Demand, Fit, Misfit, match_schema, schema_of, with_writer
from underlay.index.intake.stack_arrays import FilePlace, StackArrays
from underlay.index.intake.statistics import check_counts, column_arrays, column_entries, count_nulls, leaves_of
from underlay.index.segment.segment import Segment
from underlay.parquet.footer.checks import check_ranges, check_readable
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.stack import Stack, read_stacks, stack_of
from underlay.parquet.records.records import Flags
from underlay.parquet.write.writer import WrittenFile
from underlay.pm.format.checksum import identity
from underlay.schema.table_schema import TableSchema


def match_footer(
    footer: Footer, table: TableSchema, *, by: By = "name", ignore_surplus: bool = False
) -> FileLayout | Misfit:
    """The layout of a file that fits the table, or why it does not."""
    fit = match_schema(footer.schema, footer.created_by, table, by=by, ignore_surplus=ignore_surplus)
    if isinstance(fit, Misfit):
        return fit
    reasons = unmet_demands(stack_of(footer), fit)[0]
    return Misfit(reasons) if reasons else fit.layout


def unmet_demands(stack: Stack, fit: Fit) -> list[tuple[str, ...]]:
    """For each file, the reasons why its nulls do not fit the table."""
    begins = stack.begins
    met = [(demand, _is_met(stack, demand)) for demand in fit.demands]
    return [
        tuple(
            f"Column {demand.path} is required in the table, and the file may hold nulls in it."
            for demand, is_met in met
            if not is_met[begin:end].all()
        )
        for begin, end in pairwise(begins)
    ]


def _is_met(stack: Stack, demand: Demand) -> Flags:
    """The row groups where one of the leaves is known to have no nulls."""
    is_met = np.zeros(stack.row_counts.size, np.bool_)
    for index in demand.leaves:
        (counts,), (known,) = count_nulls(stack, leaves_of([stack.schema.leaves[index]]))
        is_met |= known & (counts == 0)
    return is_met


def file_entry(
    footer: Footer, layout: FileLayout, table: TableSchema, place: FilePlace, *, nan_free: Flags | None = None
) -> FileEntry:
    """The entry of one file. Raises Damaged or Unsupported when its chunks cannot be read."""
    check_readable(footer)
    check_ranges(footer, place.size_bytes)
    return file_entries(stack_of(footer), layout, table, [place], nan_free=nan_free)[0]


def written_entry(
    file: WrittenFile, table: TableSchema, location: str, *, sidecar: bytes | None = None
) -> tuple[FileEntry, FileLayout]:
    """The entry and the layout of a file that we have just written with the table's schema."""
    fit = _own_fit(file.footer.schema.raw, file.footer.created_by, table)
    if isinstance(fit, Misfit):
        raise SchemaMismatch("the file was not written for this table", place=location, found=" ".join(fit.reasons))
    footer = file.footer
    (columns,) = column_entries(stack_of(footer), fit.layout, table, nan_free=file.nan_free)
    entry = FileEntry(
        location=location,
        size_bytes=file.size_bytes,
        etag=None,
        footer_bytes=len(footer.data),
        footer_crc=crc32(footer.data),
        layout=fit.layout.id,
        block_rows=footer.row_groups.num_rows.astype("<i8").tobytes(),
        columns=columns,
        sidecar_bytes=0 if sidecar is None else len(sidecar),
        sidecar_crc=0 if sidecar is None else identity(sidecar),
    )
    return entry, fit.layout


@lru_cache(maxsize=64)
def _own_fit(elements: bytes, created_by: str | None, table: TableSchema) -> Fit | Misfit:
    """How our own files fit: the same for all files written for one schema."""
    return match_schema(schema_of(elements), created_by, table, by="id")


def file_entries(
    stack: Stack,
    layout: FileLayout,
    table: TableSchema,
    places: Sequence[FilePlace],
    *,
    nan_free: Flags | None = None,
) -> list[FileEntry]:
    """The entries of files whose chunks were checked, in the order of the stack."""
    if len(layout.fields) != len(stack.schema.leaves):
        raise SchemaMismatch(
            "the layout belongs to another schema", expected=len(stack.schema.leaves), found=len(layout.fields)
        )
    check_counts(stack)
    begins = stack.begins
    columns = column_entries(stack, layout, table, nan_free=nan_free)
    rows = stack.row_counts.astype("<i8")
    return [
        FileEntry(
            location=place.location,
            size_bytes=place.size_bytes,
            etag=place.etag,
            footer_bytes=len(origin.raw),
            footer_crc=crc32(origin.raw),
            layout=layout.id,
            block_rows=rows[begin:end].tobytes(),
            columns=of_file,
        )
        for origin, place, of_file, (begin, end) in zip(stack.origins, places, columns, pairwise(begins), strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesAlike:
    """Files of one writer as the arrays of a segment, and the position of each among all files read."""

    segment: Segment
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyFiles:
    """The result of reading many footers: files grouped by form, why some do not fit, by position, and the layouts of
    the rest.

    A file whose only fault is a null where none is allowed is in both `alike` and `misfits`.
    """

    alike: tuple[FilesAlike, ...]
    misfits: Mapping[int, Misfit]
    layouts: tuple[FileLayout, ...]


def read_files(
    footers: Sequence[bytes],
    places: Sequence[FilePlace],
    table: TableSchema,
    *,
    by: By = "name",
    ignore_surplus: bool = False,
    given: frozenset[int] = frozenset(),
) -> ManyFiles:
    """Many files from their Thrift footers. Files of one writer are read together. See `match_schema` for `given`.

    Raises Damaged or Unsupported, with its location, for a file that cannot be read.
    """

    def read(footers: Sequence[bytes], places: Sequence[FilePlace]) -> ManyFiles:
        return _read_files(footers, places, table, by, ignore_surplus, given)

    try:
        return read(footers, places)
    except UnderlayError as error:
        for footer, place in zip(footers, places, strict=True):
            _name_damage(read, footer, place)
        raise error  # the first error, not one that the second look met


def _name_damage(read: Callable[[list[bytes], list[FilePlace]], ManyFiles], footer: bytes, place: FilePlace) -> None:
    try:
        read([footer], [place])
    except UnderlayError as error:
        raise error.at(place.location) from None


def _read_files(
    footers: Sequence[bytes],
    places: Sequence[FilePlace],
    table: TableSchema,
    by: By,
    ignore_surplus: bool,
    given: frozenset[int],
) -> ManyFiles:
    alike: list[FilesAlike] = []
    misfits: dict[int, Misfit] = {}
    layouts: dict[str, FileLayout] = {}
    for stack, indices in read_stacks(footers):
        here = [places[index] for index in indices]
        _check_stack(stack, here)
        created_by = stack.origins[0].created_by
        fit = match_schema(stack.schema, created_by, table, by=by, ignore_surplus=ignore_surplus, given=given)
        if isinstance(fit, Misfit):
            misfits.update(dict.fromkeys(indices, fit))
            continue
        unmet = {index: reasons for index, reasons in zip(indices, unmet_demands(stack, fit), strict=True) if reasons}
        misfits.update({index: Misfit(reasons) for index, reasons in unmet.items()})
        written_by = {
            created_by: with_writer(fit.layout, created_by)
            for created_by in {origin.created_by for origin in stack.origins}
        }
        of_files = [written_by[origin.created_by] for origin in stack.origins]
        layouts |= {layout.id: layout for index, layout in zip(indices, of_files, strict=True) if index not in unmet}
        check_counts(stack)
        leaves = column_arrays(stack, fit.layout, table)
        arrays = StackArrays(stack, leaves, here, [layout.id for layout in of_files])
        alike.append(FilesAlike(segment=Segment(arrays, len(here)), indices=tuple(indices)))
    return ManyFiles(alike=tuple(alike), misfits=misfits, layouts=tuple(layouts.values()))


def _check_stack(stack: Stack, places: Sequence[FilePlace]) -> None:
    """Refuse chunks that cannot be read."""
    counts = [origin.row_group_count for origin in stack.origins]
    sizes = np.repeat(np.array([place.size_bytes for place in places], np.int64), counts)[:, None]
    check_readable(stack)
    check_ranges(stack, sizes)

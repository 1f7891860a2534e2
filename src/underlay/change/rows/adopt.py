"""Turns files that another engine wrote for a table, on the disk of its local store, into staged files of the table.

It reads their footers, text columns, and columns that get bloom filters, and no other values. It adds the filters and
sidecars, syncs the files, and moves them into the revision's folder under our names: only the writer's name then
distinguishes them from files that Underlay wrote.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from underlay.change.files.settings import write_options
from underlay.change.rows.staged import Staged, Staging
from underlay.errors import Damaged, Inconsistent, SchemaMismatch, Unsupported
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.intake.entries import file_entry, match_footer
from underlay.index.intake.nan_free import nan_free_chunks
from underlay.index.intake.schema_match import Misfit
from underlay.index.intake.stack_arrays import FilePlace
from underlay.index.keys import RevisionKeys, file_name
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.write.add_blooms import add_blooms
from underlay.parquet.write.check_text import check_text
from underlay.pm.convert.build import read_blooms
from underlay.pm.convert.footer import convert
from underlay.pm.format.checksum import identity
from underlay.prune.predicates.operand import format_column
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import TypeKind
from underlay.store.directory import sync_file, take_over
from underlay.store.store import Store
from underlay.values.physical import PhysicalType

_FLOATS = (PhysicalType.FLOAT, PhysicalType.DOUBLE)
_DICTIONARIES = 1 << 2 | 1 << 8
"""The encodings PLAIN_DICTIONARY and RLE_DICTIONARY."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A file that fits the table and is on the disk, with a sidecar in the store: it only lacks its final name."""

    entry: FileEntry
    layout: FileLayout


def prepare(staging: Staging, store: Store, path: Path, *, is_finished: bool = False) -> Prepared | None:
    """Check a file that no other program uses, finish and sync it, and put its sidecar; None for a file without rows.

    Columns are matched by name. `is_finished`: its writer has checked that text is valid, and has made the bloom
    filters. Raises SchemaMismatch when the file does not fit the table; Damaged, Unsupported, NotFound, Unavailable.
    """
    if staging.definition.checks:
        raise Unsupported("rows that another engine wrote cannot be checked", hint="Write them with Underlay.")
    schema, keys = from_record(staging.definition.schema), RevisionKeys(staging.folder)
    loaded = load_footer(path)
    footer = loaded.footer
    if not footer.num_rows:
        return None
    name = file_name(staging.next_block, int.from_bytes(os.urandom(8), "big"))
    try:
        layout = _layout(footer, schema)
        if not is_finished:
            check_text(path, _text_columns(footer, layout, schema))
            loaded = add_blooms(path, loaded, write_options(staging.definition).bloom)
            footer = loaded.footer
        place = FilePlace(location=name, size_bytes=loaded.file_size)
        entry = file_entry(footer, layout, schema, place, nan_free=nan_free_chunks(footer))
        with path.open("rb") as file:
            sidecar = convert(footer, loaded.tail.footer_offset, blooms=read_blooms(file, loaded))
    except Damaged as error:
        raise error.at(str(path)) from None
    sync_file(path)
    store.put(keys.sidecar(name), sidecar)
    return Prepared(
        entry=replace(entry, sidecar_bytes=len(sidecar), sidecar_crc=identity(sidecar), spec=staging.definition.spec),
        layout=layout,
    )


def adopt(staging: Staging, root: Path, prepared: Mapping[Path, Prepared]) -> Staged:
    """Make prepared files staged files, by moving each from its current place to its final name.

    `root` is the store's directory, and the files lie on its file system. Raises NotFound, Unavailable. Files moved
    before that are unreferenced.
    """
    if prepared:
        take_over(root, staging.folder, {path: one.entry.location for path, one in prepared.items()})
    layouts = {one.layout.id: one.layout for one in prepared.values()}
    return Staged(entries=tuple(one.entry for one in prepared.values()), layouts=tuple(layouts.values()))


def _layout(footer: Footer, schema: TableSchema) -> FileLayout:
    found = match_footer(footer, schema)
    if isinstance(found, Misfit):
        raise SchemaMismatch(" ".join(found.reasons), hint="Nothing was committed.")
    chunks = footer.chunks
    for leaf in footer.schema.leaves:
        place = ".".join(leaf.path)
        if not leaf.max_def_level and (chunks.statistics.null_count[:, leaf.index] > 0).any():
            # The column was declared without nulls, so the file has fewer values than rows.
            raise SchemaMismatch("a column declared without nulls holds a null", place=place)
        is_looked_up = (chunks.encodings & _DICTIONARIES > 0) | chunks.has_bloom_filter_offset
        if leaf.physical_type in _FLOATS and is_looked_up[:, leaf.index].any():
            raise Inconsistent("a float has a dictionary or a bloom filter: readers would miss a zero", place=place)
    return found


def _text_columns(footer: Footer, layout: FileLayout, schema: TableSchema) -> dict[str, str]:
    """The text columns by their paths in the file, each with its name in the table."""
    texts = {leaf.id: format_column(leaf.path) for leaf in schema.leaves if leaf.type.kind is TypeKind.STRING}
    fields = zip(footer.schema.leaves, layout.fields, strict=True)
    return {".".join(leaf.path): texts[field] for leaf, field in fields if field in texts}

"""Files that another engine wrote for a table, on the disk of its local store, as staged files of the table's own.

Their footers are read, and their bloom filters; no row is. They are synced, get sidecars, and are moved into the
revision's folder under names of ours: nothing tells them from files that Underlay wrote but their writer's name.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from underlay.change.staged import Staged, Staging
from underlay.errors import SchemaMismatch, UnderlayError
from underlay.index.entry import FileEntry, Layout
from underlay.index.facts import file_entry, match_footer
from underlay.index.keys import RevisionKeys, file_name
from underlay.index.layout import Misfit
from underlay.index.stack_arrays import FilePlace
from underlay.index.without_nan import nan_free_chunks
from underlay.parquet.footer import Footer
from underlay.parquet.tail import LoadedFooter, load_footer
from underlay.pm.build import sidecar_of
from underlay.pm.checksum import identity
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.store.store import Store
from underlay.store.take_over import sync_file, take_over
from underlay.table.threads import map_in_threads

_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    path: Path
    loaded: LoadedFooter


@dataclass(frozen=True, slots=True, kw_only=True)
class _Adopted:
    path: Path
    entry: FileEntry
    layout: Layout


def adopt(staging: Staging, store: Store, root: Path, paths: Sequence[Path]) -> Staged:
    """Make these files, which nobody writes any more, staged files; those without rows are left where they are.

    `root` is the store's directory, and the files lie on its file system. Columns are matched by name. Raises
    SchemaMismatch when a file does not fit the table; Damaged, Unsupported, Unavailable. What was moved by then is
    named by nobody.
    """
    schema, keys = from_record(staging.definition.schema), RevisionKeys(staging.folder)
    written = [one for one in map_in_threads(_read, paths, _THREADS) if one.loaded.footer.num_rows]
    names = _names(staging, [one.loaded.footer for one in written])

    def finish(numbered: tuple[_Written, str]) -> _Adopted:
        return _finish(*numbered, schema, store, keys)

    adopted = map_in_threads(finish, list(zip(written, names, strict=True)), _THREADS)
    if adopted:
        take_over(root, keys.folder, {one.path: one.entry.location for one in adopted})
    layouts = {one.layout.id: one.layout for one in adopted}
    return Staged(entries=tuple(one.entry for one in adopted), layouts=tuple(layouts.values()))


def _read(path: Path) -> _Written:
    return _Written(path=path, loaded=load_footer(path))


def _names(staging: Staging, footers: Sequence[Footer]) -> list[str]:
    names, block = [], staging.next_block
    for footer in footers:
        names.append(file_name(block, int.from_bytes(os.urandom(8), "big")))
        block += footer.row_group_count
    return names


def _finish(written: _Written, name: str, schema: TableSchema, store: Store, keys: RevisionKeys) -> _Adopted:
    """Sync a file, put its sidecar, and make its entry."""
    footer, size = written.loaded.footer, written.loaded.file_size
    layout = match_footer(footer, schema)
    if isinstance(layout, Misfit):
        raise SchemaMismatch(" ".join(layout.reasons), place=str(written.path), hint="No version has its rows.")
    try:
        _check_required(footer)
        place = FilePlace(location=name, size_bytes=size)
        entry = file_entry(footer, layout, schema, place, nan_free=nan_free_chunks(footer))
        sidecar = _sidecar(written)
    except UnderlayError as error:
        raise error.at(str(written.path)) from None
    store.put(keys.sidecar(name), sidecar)
    sync_file(written.path)
    entry = replace(entry, sidecar_bytes=len(sidecar), sidecar_crc=identity(sidecar))
    return _Adopted(path=written.path, entry=entry, layout=layout)


def _check_required(footer: Footer) -> None:
    """Refuse a file whose writer was told that a column has no nulls and met one: it has fewer values than rows."""
    for leaf in footer.schema.leaves:
        if not leaf.max_def_level and (footer.chunks.statistics.null_count[:, leaf.index] > 0).any():
            raise SchemaMismatch("a column that was said to hold no null holds one", place=".".join(leaf.path))


def _sidecar(written: _Written) -> bytes:
    with written.path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        view = memoryview(data)
        try:
            return sidecar_of(view, written.loaded.footer)
        finally:
            view.release()

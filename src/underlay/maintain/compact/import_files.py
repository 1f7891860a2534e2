"""Makes registered files the table's own: copies their blocks as they are into files that the table owns.

Blocks that may mislead other engines are encoded again: files with floats, whose statistics and dictionaries may hide
NaN or one of the two zeros; files with INT96; files of writers whose statistics are known to be wrong or that use the
old calendar; and files with columns from paths. The registered files stay where they are, and are no longer read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from os import PathLike

import numpy as np

from underlay.change.register.unregister import registered_files
from underlay.change.update.edit import FileAccess
from underlay.errors import Unsupported
from underlay.index.intake.file_type import file_type, is_int96
from underlay.index.intake.schema_match import schema_of
from underlay.index.intake.trust import has_legacy_calendar, is_old_writer
from underlay.index.operation import Operation
from underlay.maintain.compact.choose import ChosenFile, CompactGroup, CompactTargets, Reason, all_files, whole
from underlay.maintain.compact.compact import Compacted, CompactProgress, in_process, rewrite_groups
from underlay.maintain.compact.outputs import OpenFile
from underlay.maintain.compact.rewrite import Rewriter, try_group
from underlay.prune import TRUE
from underlay.schema.types import TypeKind
from underlay.table.open_table import OpenTable
from underlay.table.versions.snapshot import Snapshot

_MISLEADING = (TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64)


def import_files(
    table: OpenTable,
    files: FileAccess,
    patterns: Sequence[str | PathLike[str]] = (),
    *,
    dry_run: bool = False,
    progress: CompactProgress | None = None,
) -> Compacted:
    """Import the registered files that these paths, folders and patterns name, or all of them; the rows stay.

    Raises NotFound for a pattern that matches no file, Unavailable, CommitUnknown. Files that cannot be read stay
    registered.
    """
    head = table.head()
    snapshot = table.snapshot(head)
    wanted = None if not patterns else set(registered_files(snapshot, patterns, files.stores))
    chosen = all_files(snapshot, TRUE, Reason.REGISTERED, registered=True)
    groups = [_group(snapshot, one) for one in chosen if wanted is None or one.entry.location in wanted]
    rewriter = Rewriter(
        snapshot=snapshot, files=files, targets=CompactTargets.of(snapshot.definition), check_source=_check
    )
    return rewrite_groups(
        table,
        head,
        groups,
        in_process(groups, partial(try_group, rewriter, rewriter.run)),
        Operation.IMPORT,
        dry_run=dry_run,
        progress=progress,
        must_keep=True,
    )


def _group(snapshot: Snapshot, file: ChosenFile) -> CompactGroup:
    """A group of one file. Blocks with deleted rows are encoded again; all blocks, if they must not be copied."""
    entry = file.entry
    group = whole([file], is_encoded=True)
    if entry.constants or entry.spec != snapshot.definition.spec or _is_misleading(snapshot, file):
        return group
    is_whole = file.live == file.rows
    return replace(
        group,
        copied=(np.flatnonzero(is_whole & (file.live > 0)),),
        encoded=(np.flatnonzero(~is_whole & (file.live > 0)),),
    )


def _is_misleading(snapshot: Snapshot, file: ChosenFile) -> bool:
    layout = snapshot.layout(file.entry.layout)
    nodes = [leaf.node for leaf in schema_of(layout.elements).leaves]
    kinds = [found.kind for node in nodes if (found := file_type(node)) is not None]
    return is_old_writer(layout.created_by) or any(map(is_int96, nodes)) or any(kind in _MISLEADING for kind in kinds)


def _check(file: OpenFile) -> None:
    """Refuse to copy blocks that, as only the footer shows, must not be copied. Their rows are then encoded again."""
    if has_legacy_calendar(file.footer.key_values):
        raise Unsupported("its dates may be of the old calendar", place=file.entry.location)

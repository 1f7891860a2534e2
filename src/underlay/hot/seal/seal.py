"""Seals partitions exactly once, whatever crashes: R15 (docs/commit-rules.md).

| step | where | a crash behind it leaves |
|---|---|---|
| 1 hold back rows for the partitions | memory | nothing |
| 2 put files with their rows | store | files that no version references: a sweep deletes them |
| 3 mark the partitions | `_txn` | marked partitions, read as before; they get no rows until the seal is done |
| 4 commit the files and the fence + 1 | root | readers discard the marked partitions, since the root counts one more |
| 5 drop the marked partitions | `_txn` | directories that a purge removes |

The fence makes the commit happen once: it holds the epoch that `_txn` has, and takes the next one. A writer that finds
marked partitions finishes their seal before it does anything else: if the root has the next epoch, by step 5, else from
step 2 on, with the same partitions. So it does not matter whether the commit of a dead process lands late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from underlay.change.files.add_files import add_files
from underlay.change.update.edit import FileAccess
from underlay.errors import CommitConflict, CommitUnknown, Inconsistent, UnderlayError
from underlay.hot.read.snapshot import PinnedHot
from underlay.hot.seal.files import SealedFiles, make_files
from underlay.hot.txn.record import TxnPartition
from underlay.hot.writer.appender import HotAppender
from underlay.index.operation import Operation
from underlay.index.root import Root
from underlay.table.commit.commit import commit
from underlay.table.open_table import Head

_ATTEMPTS = 3
"""How often a commit whose outcome is unknown is tried again: the fence lets only one of them land."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """The result of a seal. `version` is the table's; None when no partition was finished."""

    version: int | None
    partitions: tuple[str, ...]
    row_count: int
    file_count: int


def seal_partitions(writer: HotAppender, files: FileAccess, begins: Sequence[int]) -> Sealed:
    """Turn these partitions into files of the table. Rows for them wait meanwhile.

    Raises CommitConflict when the table changed so that they no longer fit, and they stay hot; CommitUnknown, after
    which the next writer finishes the seal.
    """
    if not begins:
        return Sealed(version=None, partitions=(), row_count=0, file_count=0)
    writer.freeze(begins)
    try:
        return _seal(writer, files, begins)
    finally:
        writer.thaw()


def finish_seal(writer: HotAppender, files: FileAccess) -> None:
    """Finish what a writer that died has begun."""
    marked = writer.state.sealing
    if marked:
        seal_partitions(writer, files, [one.timestamp for one in marked])


def _seal(writer: HotAppender, files: FileAccess, begins: Sequence[int]) -> Sealed:
    fence, epoch = writer.identity.fence, writer.state.sealed_epoch
    head = writer.table.head()
    if head.root.fences.get(fence, 0) == epoch + 1 and writer.state.sealing:
        return _dropped(writer, head.root, epoch + 1, 0)
    _check_epoch(writer, head)
    chosen = [one for one in writer.state.partitions if one.timestamp in begins]
    made = _made(writer, files, head, chosen)
    is_marked = bool(writer.state.sealing)
    if not is_marked:
        writer.in_turn(lambda: writer.commits.mark([one.timestamp for one in chosen]))
    try:
        root = _committed(writer, head, made, epoch)
    except BaseException as error:
        if isinstance(error, UnderlayError) and not isinstance(error, CommitUnknown):
            # Refused for certain: no root of ours was tried, or another has its number, so it cannot appear any more.
            if not is_marked:
                writer.in_turn(lambda: writer.commits.mark([]))
        else:
            writer.stop()  # as after an interrupt: the root may have the files, and the next writer finds out
        raise
    return _dropped(writer, root, epoch + 1, len(made.entries))


def _made(writer: HotAppender, files: FileAccess, head: Head, chosen: Sequence[TxnPartition]) -> SealedFiles:
    pinned = PinnedHot(folder=writer.folder, identity=writer.identity, record=writer.state)
    return make_files(writer.table.snapshot(head), pinned, chosen, files, writer.newest_layout(0.0))


def _committed(writer: HotAppender, head: Head, made: SealedFiles, epoch: int) -> Root:
    fence = writer.identity.fence
    unknown: CommitUnknown | None = None
    for _ in range(_ATTEMPTS):
        transaction = writer.table.begin(head, Operation.SEAL)
        transaction.hold(fence, epoch)
        transaction.take_over(fence)
        add_files(transaction, made.entries, made.layouts)
        transaction.count("hot_rows", made.row_count)
        try:
            return commit(transaction)
        except CommitUnknown as error:
            unknown = error
        except CommitConflict:
            found = writer.table.head().root
            if found.fences.get(fence, 0) == epoch + 1:
                return found  # an earlier attempt landed after all, or that of a process that died
            raise
        except UnderlayError as error:
            if unknown is None:
                raise
            raise unknown from error  # this attempt says nothing about the one before
    raise unknown or AssertionError("no attempt was made")


def _dropped(writer: HotAppender, root: Root, epoch: int, file_count: int) -> Sealed:
    gone = writer.state.sealing
    writer.in_turn(lambda: writer.commits.drop_sealed(epoch, writer.newest_layout()))
    return Sealed(
        version=root.version,
        partitions=tuple(writer.commits.name_of(one.timestamp) for one in gone),
        row_count=sum(one.row_count for one in gone),
        file_count=file_count,
    )


def _check_epoch(writer: HotAppender, head: Head) -> None:
    found, expected = head.root.fences.get(writer.identity.fence, 0), writer.state.sealed_epoch
    if found != expected:
        raise Inconsistent(
            "the lake and the hot partitions do not belong together: they were sealed a different number of times",
            place=str(writer.folder),
            expected=f"seal {expected}",
            found=f"seal {found}",
            hint="One of them was restored from a copy. Restore both as of the same time.",
        )

"""How a verb changes a table: begin on the newest version, prepare, commit; start over if the table has moved on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from underlay.errors import InvalidRequest, RevisionClosed
from underlay.index.change import TOKEN
from underlay.index.operation import Operation
from underlay.index.root import Root
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import Head, OpenTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The result of a change."""

    version: int
    """The version that has it; the base's when there was nothing to change."""
    head: Head
    """The newest version seen: the committed one if `is_new`."""
    is_new: bool = False
    """Whether this call committed it."""
    is_repeat: bool = False
    """Whether an earlier call with the same token committed it."""


def commit_change(
    table: OpenTable,
    operation: Operation,
    prepare: Callable[[Transaction], object],
    *,
    token: str | None = None,
    base: Head | None = None,
    can_redo: bool = True,
) -> Committed:
    """Commit what `prepare` puts into a transaction; if that is nothing, there is no new version.

    The transaction is on the newest version, and when another revision takes over, `prepare` is called again for that
    one. With a `base`, for work that was done for exactly that version, RevisionClosed is raised instead. `can_redo`:
    when commits that came first invalidate the prepared change, it is prepared again on top of them; otherwise
    CommitConflict is raised, unless they only rewrote rows. With a token the change is committed once, however often
    this is called with it. Also raises CommitUnknown, and what `prepare` raises.
    """
    while True:
        try:
            return _commit_on(table, base or table.head(), operation, prepare, token, can_redo)
        except RevisionClosed as closed:
            if base is not None:
                raise
            table.follow(closed)


def version_of_token(table: OpenTable, head: Head, token: str | None) -> int | None:
    """The version that was committed with this token, None without one. Raises InvalidRequest unless it is text."""
    if not isinstance(token, str | None):
        raise InvalidRequest("a token must be a string", found=repr(token))
    known = None if token is None else table.snapshot(head).find_sources([TOKEN + token]).get(TOKEN + token)
    return None if known is None else known.version


def _commit_on(
    table: OpenTable,
    head: Head,
    operation: Operation,
    prepare: Callable[[Transaction], object],
    token: str | None,
    can_redo: bool,
) -> Committed:
    known = version_of_token(table, head, token)
    if known is not None:
        return Committed(version=known, head=head, is_repeat=True)
    prepared: list[Transaction] = []

    def begin(root: Root) -> Transaction:
        transaction = table.begin(Head(head.revision, root), operation)
        if token is not None:
            transaction.set_token(token)
        prepare(transaction)
        prepared.append(transaction)
        return transaction

    def redo(root: Root) -> Transaction:
        transaction = begin(root)
        if not transaction.has_changes:
            raise _NothingLeft(root)
        return transaction

    first = begin(head.root)
    if not first.has_changes:
        return Committed(version=head.root.version, head=head)
    try:
        root = commit(first, redo=redo, redo_rewrites_only=not can_redo)
    except _NothingLeft as found:
        return Committed(version=found.root.version, head=Head(head.revision, found.root))
    # A winner of the race may have had the same token.
    is_repeat = root.commit_id != prepared[-1].commit_id
    return Committed(version=root.version, head=Head(head.revision, root), is_new=not is_repeat, is_repeat=is_repeat)


class _NothingLeft(Exception):
    """Other commits have done the work: this version needs no change."""

    def __init__(self, root: Root) -> None:
        super().__init__()
        self.root = root

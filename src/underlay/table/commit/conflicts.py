"""Decides whether a transaction that lost a race may still commit, and what to do if not: R4 (docs/commit-rules.md).
Pure.

`conflict_rules` says which acts conflict; this module finds out what two commits did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from underlay.index import deletion_vectors as bitmaps
from underlay.index.change import TOKEN, Change
from underlay.index.entry import FileEntry
from underlay.index.root import Definition, Root, SourceRecord
from underlay.schema.record import from_record
from underlay.table.commit.conflict_rules import RULES, Act, ConflictVerdict, Rule, When


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSet:
    """What a transaction relied on, besides the files that it changes."""

    is_whole: bool = False
    """It read the whole table."""
    may_match: Callable[[FileEntry], bool] | None = None
    """Whether a new file may hold rows that the transaction would have had to consider."""
    locations: frozenset[str] = frozenset()
    """Files whose rows it assumed to exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    """A transaction, and the table's definition when it began."""

    change: Change
    reads: ReadSet
    definition: Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """A commit that came first, and the files that it added."""

    root: Root
    added: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True)
class Rebase:
    """Nothing stands in the way."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Only the caller can decide which change should win."""

    reason: str
    winner: Root


@dataclass(frozen=True, slots=True)
class Redo:
    """The same request, done again on the new head, may succeed.

    `is_rewrite`: the only obstacle is that rows it needs were moved, unchanged, to other files.
    """

    reason: str
    winner: Root
    is_rewrite: bool = False


@dataclass(frozen=True, slots=True)
class AlreadyCommitted:
    """An earlier attempt of the same request was committed, as this version."""

    version: int


Decision = Rebase | Refuse | Redo | AlreadyCommitted


def conflicts(mine: Mine, theirs: Sequence[Winner]) -> Decision:
    """What to do with a transaction, given all commits since its base, in order."""
    own_acts = _acts_of(mine)
    strongest: tuple[Rule, Winner] | None = None
    # Those that keep rows come last: of equal verdicts the first counts, and a caller that redoes its work only after
    # rewrites must see any other reason first.
    for winner in sorted(theirs, key=lambda one: one.root.operation.keeps_rows):
        their_acts = _acts_of_winner(winner, mine.definition)
        for rule in RULES:
            is_stronger = strongest is None or _RANK[rule.verdict] > _RANK[strongest[0].verdict]
            is_met = rule.mine in own_acts and rule.theirs in their_acts
            if is_stronger and is_met and _holds(rule.when, mine, winner):
                strongest = rule, winner
    if strongest is None:
        return Rebase()
    rule, winner = strongest
    reason = f"this commit {rule.mine.value}, the other {rule.theirs.value} ({rule.when.value})"
    match rule.verdict:
        case ConflictVerdict.DONE:
            return AlreadyCommitted(winner.root.version)
        case ConflictVerdict.REFUSE:
            return Refuse(reason, winner.root)
        case ConflictVerdict.REDO:
            return Redo(reason, winner.root, is_rewrite=rule.theirs is Act.REWRITE)


def is_fenced_off(root: Root, held: tuple[str, int] | None) -> bool:
    """Whether the job that a writer holds, with its epoch, was taken over (R8)."""
    return held is not None and root.fences.get(held[0], 0) != held[1]


def is_stricter(before: Definition, after: Definition) -> bool:
    """Whether files written for `before` must be checked again for `after`.

    They must if the key, partitions, a type or a default changed, if there is a new check, or if a column is required
    that was nullable or missing. Other new, renamed and dropped columns, the sort order and comments do not matter.
    """
    if before.key != after.key or before.partition_by != after.partition_by:
        return True
    if not after.checks.items() <= before.checks.items():
        return True
    old, new = from_record(before.schema).leaf_by_id, from_record(after.schema).leaf_by_id
    for field, leaf in new.items():
        known = old.get(field)
        if known is None:
            if leaf.is_required and leaf.default is None:
                return True
        elif (leaf.type, leaf.default) != (known.type, known.default) or leaf.is_required > known.is_required:
            return True
    return False


_RANK = {verdict: rank for rank, verdict in enumerate(ConflictVerdict)}


def _acts_of(mine: Mine) -> set[Act]:
    change, reads = mine.change, mine.reads
    acts = {
        Act.MATCH: reads.is_whole or reads.may_match is not None or bool(reads.locations),
        Act.ADD: bool(change.files or change.segments),
        Act.DELETE: bool(change.deletes),
        Act.REPLACE: bool(change.removed),
        Act.DEFINE: change.definition is not None,
        Act.CONSTRAIN: change.definition is not None and is_stricter(mine.definition, change.definition),
        Act.RESTORE: change.restored is not None,
        Act.INGEST: bool(_uris(change.sources)),
        Act.TOKEN: change.token is not None,
        Act.FENCE: bool(change.fences),
        Act.EXPIRE: change.retention is not None,
    }
    return {act for act, is_done in acts.items() if is_done}


def _acts_of_winner(winner: Winner, before: Definition) -> set[Act]:
    delta = winner.root.delta
    # A compaction moves rows between files: it adds and deletes none.
    is_rewrite = winner.root.operation.keeps_rows
    acts = {
        Act.ADD: bool(delta.added_in_tail or delta.added_segments) and not is_rewrite,
        Act.DELETE: bool(delta.deletes),
        Act.REPLACE: bool(delta.removed) and not is_rewrite,
        Act.REWRITE: bool(delta.removed) and is_rewrite,
        Act.DEFINE: delta.definition is not None,
        Act.CONSTRAIN: delta.definition is not None and is_stricter(before, delta.definition),
        Act.RESTORE: delta.restored is not None,
        Act.INGEST: bool(_uris(delta.sources)),
        Act.TOKEN: len(_uris(delta.sources)) < len(delta.sources),
        Act.FENCE: bool(delta.fences),
        Act.EXPIRE: delta.retention is not None,
    }
    return {act for act, is_done in acts.items() if is_done}


def _holds(when: When, mine: Mine, winner: Winner) -> bool:
    change, reads, delta = mine.change, mine.reads, winner.root.delta
    match when:
        case When.ALWAYS:
            return True
        case When.MAY_MATCH:
            matches = reads.may_match
            return reads.is_whole or (matches is not None and any(matches(file) for file in winner.added))
        case When.READ_FILE:
            return reads.is_whole or not reads.locations.isdisjoint((*delta.deletes, *delta.removed))
        case When.WHOLE:
            return reads.is_whole
        case When.SAME_ROW:
            shared = change.deletes.keys() & delta.deletes.keys()
            is_new = any(bitmaps.intersects(change.deletes[name], delta.deletes[name]) for name in shared)
            return is_new and not _only_delete(change, winner.root)
        case When.SAME_FILE:
            return not {*change.deletes, *change.removed}.isdisjoint(delta.removed)
        case When.CHANGED_FILE:
            return not delta.deletes.keys().isdisjoint(change.removed) and not _only_delete(change, winner.root)
        case When.SAME_LOCATION:
            return not {file.location for file in change.files}.isdisjoint(file.location for file in winner.added)
        case When.SAME_SOURCE:
            return not _uris(change.sources).isdisjoint(_uris(delta.sources))
        case When.SAME_TOKEN:
            return any(source.uri == change.token for source in delta.sources)
        case When.SAME_JOB:
            return not change.fences.keys().isdisjoint(delta.fences)
        case When.RESTORED_VERSION:
            return change.restored is not None and not winner.root.retention.has(change.restored.version)


def _uris(sources: Sequence[SourceRecord]) -> set[str]:
    return {source.uri for source in sources if not source.uri.startswith(TOKEN)}


def _only_delete(change: Change, other: Root) -> bool:
    """Whether both commits only delete: rows that both delete are gone in either order."""
    is_mine = not change.files and not change.segments
    return is_mine and not other.delta.added_in_tail and not other.delta.added_segments

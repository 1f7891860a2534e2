"""Fewer blocks by bloom filters, where equality with literals is asked of a column that has them.

The caller fetches the sidecars that `bloom_candidates` names, and hands over each file's filters by field id: the
bounds of the file's own column, whose domain is that of the file's own type (T7). Only domain and filter are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from underlay.index.entry import Flag
from underlay.index.segment_bounds import has_flag
from underlay.plan.choice import Choice
from underlay.plan.equality import equalities
from underlay.plan.part import BoolArray, Numbers, distinct
from underlay.plan.plan import Plan
from underlay.prune import ColumnBounds, ColumnPath, Domain, Operand
from underlay.schema.table_schema import TableSchema

FileKey = tuple[int, int]
"""Part, and row in it."""

FileBlooms = Mapping[int, ColumnBounds]
"""By field id, over all blocks of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomCandidates:
    """The leaves whose filters may drop something, and the files that have such filters."""

    fields: tuple[int, ...]
    files: tuple[FileKey, ...]


def bloom_candidates(plan: Plan) -> BloomCandidates:
    """What to look at. Blocks that match in full cannot be dropped."""
    fields: list[int] = []
    files: dict[FileKey, None] = {}
    for _, path, _ in equalities(plan.predicate):
        field = _field(plan.schema, path)
        for number, choice in enumerate(plan.choices):
            is_asked = _has_bloom(choice, field) if field is not None else np.zeros(0, dtype=np.bool_)
            if field is not None and is_asked.any():
                fields.append(field)
                files |= {(number, row): None for row in distinct(choice.files[is_asked]).tolist()}
    return BloomCandidates(fields=tuple(dict.fromkeys(fields)), files=tuple(sorted(files)))


def refine(plan: Plan, blooms: Mapping[FileKey, FileBlooms]) -> Plan:
    """The plan without the blocks whose filters hold none of an equality's literals. Pure.

    A file that `blooms` does not have stays as it is.
    """
    encodings = _Encodings()
    choices = []
    for number, choice in enumerate(plan.choices):
        for part, path, literals in equalities(plan.predicate):
            field = _field(plan.schema, path)
            if field is not None:
                is_missed = _misses(choice, number, field, literals, blooms, encodings)
                choice = _without(choice, str(part), is_missed)  # each equality works on what is left
        choices.append(choice)
    return replace(plan, choices=tuple(choices))


class _Encodings:
    """The bytes of an equality's literals, worked out once for each type that files have."""

    def __init__(self) -> None:
        self._found: dict[tuple[Domain, tuple[Operand, ...], tuple[type, ...]], tuple[bytes, ...] | None] = {}

    def of(self, domain: Domain, literals: tuple[Operand, ...]) -> tuple[bytes, ...] | None:
        """All encodings of all literals; None when one is not known."""
        key = (domain, literals, tuple(type(literal) for literal in literals))  # 1, 1.0 and True are one key
        if key not in self._found:
            each = [domain.plain_bytes(literal) for literal in literals]
            known = [encoding for encoding in each if encoding is not None]
            is_known = len(known) == len(each)
            self._found[key] = tuple(one for several in known for one in several) if is_known else None
        return self._found[key]


def _misses(
    choice: Choice,
    number: int,
    field: int,
    literals: tuple[Operand, ...],
    blooms: Mapping[FileKey, FileBlooms],
    encodings: _Encodings,
) -> BoolArray:
    """Which kept blocks the filters of one leaf rule out."""
    is_missed = np.zeros(len(choice.blocks), dtype=np.bool_)
    is_asked = np.flatnonzero(_has_bloom(choice, field))
    owners = choice.files[is_asked]
    edges = np.flatnonzero(np.diff(owners, prepend=-1, append=-1)).tolist()
    begins = choice.part.segment.block_begin
    for begin, end in pairwise(edges):
        row = int(owners[begin])
        bounds = blooms.get((number, row), {}).get(field)
        if bounds is not None and bounds.bloom is not None and not bounds.is_nested:
            mine = is_asked[begin:end]
            octets = encodings.of(bounds.domain, literals)
            if octets is not None:
                is_missed[mine] = _rules_out(bounds, octets, choice.blocks[mine] - begins[row])
    return is_missed


def _rules_out(bounds: ColumnBounds, encodings: tuple[bytes, ...], blocks: Numbers) -> BoolArray:
    found = np.ones(len(blocks), dtype=np.bool_)
    if bounds.bloom is not None:
        for encoding in encodings:
            found &= ~np.asarray(bounds.bloom(encoding, blocks.astype(np.intp)), dtype=np.bool_)
    return found


def _has_bloom(choice: Choice, field: int) -> BoolArray:
    """Of the kept blocks, which have a filter of a leaf and may be dropped by it."""
    statistics = choice.part.segment.statistics(field)
    if statistics is None:
        return np.zeros(len(choice.blocks), dtype=np.bool_)
    return has_flag(statistics.flags[choice.blocks], Flag.HAS_BLOOM) & ~choice.must


def _field(schema: TableSchema, path: ColumnPath) -> int | None:
    leaf = schema.leaf_by_path.get(path)
    return None if leaf is None or leaf.is_repeated else leaf.id


def _without(choice: Choice, text: str, is_missed: BoolArray) -> Choice:
    if not is_missed.any():
        return choice
    return replace(
        choice,
        blocks=choice.blocks[~is_missed],
        must=choice.must[~is_missed],
        deleted=choice.deleted[~is_missed],
        by_bloom=(*choice.by_bloom, (text, choice.blocks[is_missed])),
    )

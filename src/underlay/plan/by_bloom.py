"""Drops blocks by bloom filters, where a predicate asks for equality with literals.

The caller loads the filters of the files that `bloom_candidates` names, and hands them over leaf by leaf. A literal is
hashed in the file's own type (T7), which its layout gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import numpy as np

from underlay.index.entry import Flag
from underlay.index.segment.bounds import has_flag
from underlay.index.segment.segment import Segment
from underlay.plan.by_part import PartChoice
from underlay.plan.part import BoolArray, Numbers, distinct
from underlay.plan.plan import BlockPlan
from underlay.prune import ColumnPath, Domain, Operand
from underlay.prune.predicates.equality import equalities
from underlay.schema.table_schema import TableSchema

FileKey = tuple[int, int]
"""Part, and row in it."""

LeafKey = tuple[int, int]
"""Part, and field id of a leaf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafBlooms:
    """The filters of one leaf over the blocks of one part.

    `domains` are the file's own types, by layout. `may_hold` takes the PLAIN bytes of a value and numbers of blocks in
    the segment; a block whose filter was not loaded, or that has none, may hold everything.
    """

    domains: Mapping[str, Domain]
    may_hold: Callable[[bytes, Numbers], BoolArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomCandidates:
    """The leaves whose filters may drop something, and the files that have such filters."""

    fields: tuple[int, ...]
    files: tuple[FileKey, ...]


def bloom_candidates(plan: BlockPlan) -> BloomCandidates:
    """The filters worth loading. Blocks that match in full cannot be dropped."""
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


def refine(plan: BlockPlan, blooms: Mapping[LeafKey, LeafBlooms]) -> BlockPlan:
    """The plan without the blocks whose filters hold none of an equality's literals. Pure.

    A leaf that `blooms` does not have drops nothing.
    """
    encodings = _Encodings()
    choices = []
    for number, choice in enumerate(plan.choices):
        for part, path, literals in equalities(plan.predicate):
            field = _field(plan.schema, path)
            known = None if field is None else blooms.get((number, field))
            if field is not None and known is not None:
                is_missed = _misses(choice, field, literals, known, encodings)
                choice = _without(choice, str(part), is_missed)  # each equality works on what is left
        choices.append(choice)
    return replace(plan, choices=tuple(choices))


class _Encodings:
    """The bytes of an equality's literals, computed once for each type that files have."""

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
    choice: PartChoice, field: int, literals: tuple[Operand, ...], blooms: LeafBlooms, encodings: _Encodings
) -> BoolArray:
    """Which kept blocks the filters of one leaf rule out."""
    is_missed = np.zeros(len(choice.blocks), dtype=np.bool_)
    asked = np.flatnonzero(_has_bloom(choice, field))
    names, codes = layout_codes(choice.part.segment)
    code_of_block = codes[choice.files[asked]]
    for code, name in enumerate(names):
        octets = encodings.of(blooms.domains[name], literals) if name in blooms.domains else None
        mine = asked[code_of_block == code]
        if octets is not None and len(mine):
            blocks = choice.blocks[mine]
            nowhere = np.zeros(len(mine), dtype=np.bool_)
            is_missed[mine] = ~reduce(or_, (blooms.may_hold(one, blocks) for one in octets), nowhere)
    return is_missed


def layout_codes(segment: Segment) -> tuple[list[str], Numbers]:
    """The layouts of a segment's files, and for each file which of them it has."""

    def make() -> tuple[list[str], Numbers]:
        encoded = segment.files.layouts.dictionary_encode()
        names = [str(name) for name in encoded.dictionary.to_pylist()]
        return names, encoded.indices.to_numpy().astype(np.int64)

    return segment.remember("layout_codes", make)


def _has_bloom(choice: PartChoice, field: int) -> BoolArray:
    """Which kept blocks have a filter for the leaf and may be dropped by it."""
    statistics = choice.part.segment.statistics(field)
    if statistics is None:
        return np.zeros(len(choice.blocks), dtype=np.bool_)
    return has_flag(statistics.flags[choice.blocks], Flag.HAS_BLOOM) & ~choice.must


def _field(schema: TableSchema, path: ColumnPath) -> int | None:
    leaf = schema.leaf_by_path.get(path)
    return None if leaf is None or leaf.is_repeated else leaf.id


def _without(choice: PartChoice, text: str, is_missed: BoolArray) -> PartChoice:
    if not is_missed.any():
        return choice
    return replace(
        choice,
        blocks=choice.blocks[~is_missed],
        must=choice.must[~is_missed],
        deleted=choice.deleted[~is_missed],
        by_bloom=(*choice.by_bloom, (text, choice.blocks[is_missed])),
    )

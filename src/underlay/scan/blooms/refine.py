"""A plan with fewer blocks, by the bloom filters of its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from underlay.plan.by_bloom import BloomCandidates, LeafBlooms, LeafKey, bloom_candidates, layout_codes, refine
from underlay.plan.plan import BlockPlan, PlannedFile
from underlay.pm.format.blocks import bloom_places
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.prune.domains import leaf_domain
from underlay.runtime.threads import side_by_side
from underlay.scan.blooms.sidecars import Sidecars
from underlay.scan.blooms.stored import Bitsets, read_stored_blooms
from underlay.scan.blooms.table import BloomTable
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import ObjectPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomLoader:
    """Loads the filters that a plan asks for. `shape_of` knows a layout's shape by its id."""

    sidecars: Sidecars
    shape_of: Callable[[str], FileShape]
    locate: Callable[[str], ObjectPlace]

    def refine(self, plan: BlockPlan) -> BlockPlan:
        """The plan without blocks whose filters say that no row equals what is asked for.

        Reads the filters of files that equality on a column has not ruled out, as far as they were not read before: one
        request for a file of ours, which has a sidecar, and two for another. None when no equality is asked for.
        """
        candidates = bloom_candidates(plan)
        if not candidates.files:
            return plan
        self._load(plan, candidates)
        return refine(plan, self._filters(plan, candidates))

    def _filters(self, plan: BlockPlan, candidates: BloomCandidates) -> dict[LeafKey, LeafBlooms]:
        found = {}
        for number in {part for part, _ in candidates.files}:
            segment = plan.choices[number].part.segment
            for field in candidates.fields:
                domains = {}
                for layout in layout_codes(segment)[0]:
                    leaf = self._leaf(layout, field)
                    if leaf is not None:
                        domains[layout] = leaf_domain(self.shape_of(layout).file.schema.leaves[leaf])
                table = BloomTable.of(segment, field)
                found[number, field] = LeafBlooms(domains=domains, may_hold=table.may_hold)
        return found

    def _leaf(self, layout: str, field: int) -> int | None:
        """The position of a leaf in files of a layout."""
        fields = self.shape_of(layout).layout.fields
        return fields.index(field) if field in fields else None

    def _load(self, plan: BlockPlan, candidates: BloomCandidates) -> None:
        missing = self._missing(plan, candidates)
        own = [file for file in missing if file.sidecar_bytes]
        others = [(file, self.locate(file.location)) for file in missing if not file.sidecar_bytes]
        if own:
            store, _ = self.locate(own[0].location)
            sidecars = side_by_side(self._sidecar, own, store.parallel_requests)
            for file, sidecar in zip(own, sidecars, strict=True):
                self._add(plan, file, self._inlined(file, sidecar, candidates.fields), candidates.fields)
        if others:
            leaves = {file.layout: self._leaves(file.layout, candidates.fields) for file, _ in others}
            for file, bitsets in read_stored_blooms(others, leaves):
                self._add(plan, file, bitsets, candidates.fields)

    def _missing(self, plan: BlockPlan, candidates: BloomCandidates) -> list[PlannedFile]:
        """The files of which a filter was not loaded."""
        found = []
        for number in sorted({part for part, _ in candidates.files}):
            choice = plan.choices[number]
            segment = choice.part.segment
            rows = np.array([row for part, row in candidates.files if part == number], dtype=np.int64)
            wanted = np.zeros(segment.file_count, dtype=np.bool_)
            for field in candidates.fields:
                wanted[BloomTable.of(segment, field).missing(rows)] = True
            found += [plan.file(number, row) for row in np.flatnonzero(wanted).tolist()]
        return found

    def _sidecar(self, file: PlannedFile) -> Sidecar:
        return self.sidecars.load(file, self.locate(file.location))

    def _inlined(self, file: PlannedFile, sidecar: Sidecar, fields: Sequence[int]) -> Bitsets:
        found: Bitsets = {}
        for leaf in self._leaves(file.layout, fields):
            places = bloom_places(sidecar, leaf)
            found[leaf] = [
                memoryview(sidecar.data)[begin : begin + size] if begin >= 0 else None
                for begin, size in zip(places.begins.tolist(), places.sizes.tolist(), strict=True)
            ]
        return found

    def _leaves(self, layout: str, fields: Sequence[int]) -> list[int]:
        return [leaf for field in fields if (leaf := self._leaf(layout, field)) is not None]

    def _add(self, plan: BlockPlan, file: PlannedFile, bitsets: Bitsets, fields: Sequence[int]) -> None:
        segment = plan.choices[file.part].part.segment
        block_count = int(segment.files.block_counts[file.row])
        for field in fields:
            leaf = self._leaf(file.layout, field)
            of_leaf = bitsets.get(leaf, []) if leaf is not None else []
            nothing = [None] * (block_count - len(of_leaf))
            BloomTable.of(segment, field).add(file.row, [*of_leaf[:block_count], *nothing])

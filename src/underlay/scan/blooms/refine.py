"""Narrows a plan by the bloom filters of its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from underlay.index.segment.segment import Segment
from underlay.parquet.write.bloom import contains_all, hash_values
from underlay.plan.by_bloom import BloomCandidates, LeafBlooms, LeafKey, bloom_candidates, layout_codes, refine
from underlay.plan.plan import BlockPlan, PlannedFile
from underlay.pm.format.blocks import bloom_places
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.prune.domains import leaf_domain
from underlay.runtime.fork import start_afresh_after_fork
from underlay.runtime.threads import side_by_side
from underlay.scan.blooms.sidecars import Sidecars
from underlay.scan.blooms.stored import Bitsets, read_stored_blooms
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import ObjectPlace

# The bloom filters of one leaf over the blocks of one segment, in one buffer, so that one call probes them all.

_UNKNOWN = -2
_NONE = -1
_BLOCK_BYTES = 32


class BloomTable:
    """The filters loaded so far, file by file. Safe for many threads."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Forget all filters."""
        segment = self._segment
        self._lock = Lock()
        self._begin_words = np.full(segment.block_count, _UNKNOWN, dtype=np.int64)
        self._split_blocks = np.zeros(segment.block_count, dtype=np.int64)
        self._words = np.zeros(0, dtype=np.uint32)
        self._waiting: list[bytes] = []
        self._word_count = 0

    @staticmethod
    def of(segment: Segment, field: int) -> BloomTable:
        """The table of this leaf, which is kept with the segment."""
        return segment.remember(("blooms", field), lambda: BloomTable(segment))

    def missing(self, files: NDArray[np.int64]) -> NDArray[np.int64]:
        """The files among these whose filters were not loaded."""
        is_unknown = self._begin_words[self._segment.block_begin[files]] == _UNKNOWN
        found: NDArray[np.int64] = files[is_unknown]
        return found

    def add(self, file: int, bitsets: Sequence[bytes | memoryview | None]) -> None:
        """The filters of all blocks of a file; None for a block without one."""
        first = int(self._segment.block_begin[file])
        with self._lock:
            if self._begin_words[first] != _UNKNOWN:
                return
            size = 0
            for block, bitset in enumerate(bitsets, start=first):
                if bitset is None:
                    self._begin_words[block] = _NONE
                    continue
                self._begin_words[block] = self._word_count
                self._split_blocks[block] = len(bitset) // _BLOCK_BYTES
                self._waiting.append(bytes(bitset))
                self._word_count += len(bitset) // 4
                size += len(bitset)
            self._segment.account(size)

    def may_hold(self, plain: bytes, blocks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each of these blocks of the segment, whether it may hold the value with these PLAIN bytes."""
        with self._lock:
            if self._waiting:
                self._words = np.concatenate((self._words, np.frombuffer(b"".join(self._waiting), "<u4")))
                self._waiting.clear()
            words = self._words
        return contains_all(words, self._begin_words[blocks], self._split_blocks[blocks], int(hash_values([plain])[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomLoader:
    """Loads the filters that a plan asks for. `shape_of` knows a layout's shape by its id."""

    sidecars: Sidecars
    shape_of: Callable[[str], FileShape]
    locate: Callable[[str], ObjectPlace]

    def refine(self, plan: BlockPlan) -> BlockPlan:
        """The plan without blocks whose filters rule out the values that an equality asks for.

        Reads the filters of files that other statistics have not ruled out, unless they are loaded: one request for our
        own file, which has a sidecar, and two for any other. No request without an equality.
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
        """The files with a filter that was not loaded."""
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

"""The bloom filters of one leaf over the blocks of one segment, in one buffer, so that one look asks them all."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from underlay.index.segment.segment import Segment
from underlay.parquet.write.bloom import contains_all, hash_values

_UNKNOWN = -2
_NONE = -1
_BLOCK_BYTES = 32


class BloomTable:
    """Filters as far as they were loaded, file by file. Safe for many threads."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._lock = Lock()
        self._begin_words = np.full(segment.block_count, _UNKNOWN, dtype=np.int64)
        self._split_blocks = np.zeros(segment.block_count, dtype=np.int64)
        self._words = np.zeros(0, dtype=np.uint32)
        self._waiting: list[bytes] = []
        self._word_count = 0

    @staticmethod
    def of(segment: Segment, field: int) -> BloomTable:
        """The table of this leaf, which lives as long as the segment is kept."""
        return segment.remember(("blooms", field), lambda: BloomTable(segment))

    def missing(self, files: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of these files whose filters were not loaded."""
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

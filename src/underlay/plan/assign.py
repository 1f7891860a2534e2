"""Assigns blocks to workers by weighted rendezvous hashing, so that caches stay warm as workers come and go.

Each worker's score for a block is drawn from the two names alone; the greatest wins. A new worker takes over only the
blocks that it wins, about 1/(n + 1) of them, and a lost one's go to their second choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xxhash

from underlay.errors import InvalidRequest


def assign(blocks: Sequence[str], workers: Mapping[str, float]) -> list[tuple[str, str | None]]:
    """The first and second choice of a worker for each block, by block identity; None when there is one worker.

    A worker's share is proportional to its weight. Raises InvalidRequest without workers, or with a weight that is
    not positive.
    """
    names = sorted(workers)
    if not names or not all(0 < workers[name] < float("inf") for name in names):
        raise InvalidRequest("blocks are assigned to workers with positive weights", found=dict(workers))
    keys = np.fromiter((xxhash.xxh64_intdigest(block.encode()) for block in blocks), np.uint64, len(blocks))
    scores = np.empty((len(names), len(blocks)))
    for row, name in enumerate(names):
        hashes = _mixed(keys ^ np.uint64(xxhash.xxh64_intdigest(name.encode())))
        # Uniform in (0, 1): a half step keeps it off both ends, where the logarithm is infinite or zero.
        uniform = ((hashes >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        scores[row] = -workers[name] / np.log(uniform)
    first = scores.argmax(axis=0)
    if len(names) == 1:
        return [(names[0], None) for _ in blocks]
    scores[first, np.arange(len(blocks))] = -1
    second = scores.argmax(axis=0)
    return [(names[one], names[two]) for one, two in zip(first.tolist(), second.tolist(), strict=True)]


def _mixed(values: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The finaliser of SplitMix64: hashes of one block for many workers must not be alike."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

"""Timing two ways of doing the same thing, turn by turn, so that a noisy machine is unfair to both alike."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "out"


_BATCH_SECONDS = 0.02


def compare(ways: Mapping[str, Callable[[], Any]], *, rounds: int) -> dict[str, float]:
    """Median seconds of one call of each way over `rounds` rounds."""
    return medians(sample(ways, rounds=rounds))


def medians(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The median of each way's seconds."""
    return {name: statistics.median(values) for name, values in seconds.items()}


def sample(ways: Mapping[str, Callable[[], Any]], *, rounds: int) -> dict[str, list[float]]:
    """Seconds of one call of each way in each round.

    In every round each way runs in a row for some 20 ms, so that each is measured with warm caches.
    """
    calls = {}
    for name, run in ways.items():
        run()
        calls[name] = max(1, int(_BATCH_SECONDS / max(_seconds(run, 1), 1e-9)))
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            seconds[name].append(_seconds(run, calls[name]))
    return seconds


def _seconds(run: Callable[[], Any], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls


def save(name: str, result: dict[str, Any]) -> Path:
    """Write a result as JSON to bench/out."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path

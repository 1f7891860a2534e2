"""One comparison on Spark: seconds of every system, ratios to plain Parquet, and which targets of ours are met."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.systems.known import OURS

PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The most seconds that our ways may take; None when what they are compared with was not measured."""

    words: str
    limit_seconds: float | None
    way: str = OURS
    """What names of ways begin with that it is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Seconds of each round by way, named `system` or `system way`. Ratios are of medians."""

    case: str
    question: str
    samples: Mapping[str, Sequence[float]]
    targets: tuple[Target, ...]
    read_bytes: Mapping[str, int]
    """Bytes that the JVM read in the last round, from files and from the gateway."""
    requests: Mapping[str, int | None]
    """Requests of our driver to the store in the last round; those of the JVM and of tasks are not counted."""
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    """Load average of the last minute when it was measured."""

    @property
    def medians(self) -> dict[str, float]:
        """Median seconds by way."""
        return {way: statistics.median(values) for way, values in self.samples.items()}

    def ratio(self, way: str) -> float:
        """Its median by that of plain Parquet."""
        return self.medians[way] / self.medians[PLAIN]

    def fastest_ratio(self, way: str) -> float:
        """Its fastest round by that of plain Parquet, which other work on the machine disturbs less."""
        return min(self.samples[way]) / min(self.samples[PLAIN])

    def met(self, target: Target) -> dict[str, bool | None]:
        """Whether each of our ways meets a target; None when that is not known."""
        ours = {way: seconds for way, seconds in self.medians.items() if way.startswith(target.way)}
        limit = target.limit_seconds
        return {way: None if limit is None else seconds <= limit for way, seconds in ours.items()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        ways = {
            way: {
                "median_seconds": self.medians[way],
                "ratio": self.ratio(way),
                "ratio_of_fastest": self.fastest_ratio(way),
                "seconds": list(values),
                "read_bytes": self.read_bytes[way],
                "requests": self.requests[way],
            }
            for way, values in self.samples.items()
        }
        targets = [
            {"target": target.words, "limit_seconds": target.limit_seconds, "met": self.met(target)}
            for target in self.targets
        ]
        return {"case": self.case, "question": self.question, "load": self.load, "ways": ways, "targets": targets}

    def lines(self) -> list[str]:
        """A block of a readable table."""
        lines = [f"{self.case}: {self.question}   [load {self.load:.1f}, {len(self.samples[PLAIN])} rounds]"]
        for way, seconds in sorted(self.medians.items(), key=lambda pair: pair[1]):
            ratios = f"{self.ratio(way):>8.3f} of plain, fastest {self.fastest_ratio(way):.3f}"
            times = f"{_ms(seconds):>13}   fastest {_ms(min(self.samples[way])):>12}"
            requests = self.requests[way]
            asked = "" if requests is None else f", {requests} requests"
            lines.append(f"    {way:18}{times}   {ratios}   {self.read_bytes[way]:>13,} bytes read{asked}")
        return [*lines, *(f"    {line}" for target in self.targets for line in self._target_lines(target))]

    def _target_lines(self, target: Target) -> list[str]:
        limit = "not measured" if target.limit_seconds is None else _ms(target.limit_seconds)
        said = {True: "met", False: "NOT MET", None: "unknown"}
        return [f"target {target.words} ({limit}): {way} {said[met]}" for way, met in self.met(target).items()]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"

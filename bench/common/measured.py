"""One comparison: what every way took, against which peer, and how it is shown."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.common.timing import medians
from bench.systems.known import OURS
from underlay.store.testing import CountingStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What our side asked of the store for one call."""

    requests: int
    received_bytes: int
    sent_bytes: int
    writes_in_sequence: int
    """Writes of which each waited for the one before."""

    @staticmethod
    def of(store: CountingStore) -> Work:
        """Since the store's last reset."""
        return Work(
            requests=store.request_count(),
            received_bytes=store.received_bytes(),
            sent_bytes=store.sent_bytes(),
            writes_in_sequence=store.longest_chain(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds of each round by way, named `system` or `system way`.

    Ratios are of medians. Beside them stands the ratio of the fastest rounds, which other work on the machine disturbs
    less. `target` bounds the ratio of our best way to `against`, the best peer unless another measurement is named.
    """

    case: str
    samples: Mapping[str, Sequence[float]]
    target: float | None = None
    against: tuple[str, Sequence[float]] | None = None
    work: Mapping[str, Work] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    """Load average of the last minute when it was measured."""

    @property
    def seconds(self) -> dict[str, float]:
        """Medians by way."""
        return medians(self.samples)

    @property
    def best(self) -> tuple[str, Sequence[float]]:
        """The fastest of our ways."""
        return min(self._of(is_ours=True), key=_median)

    @property
    def best_peer(self) -> tuple[str, Sequence[float]]:
        """What we are compared with."""
        return self.against or min(self._of(is_ours=False), key=_median)

    @property
    def ratio(self) -> float:
        """Our seconds by the best peer's."""
        return _median(self.best) / _median(self.best_peer)

    @property
    def ratio_of_fastest(self) -> float:
        """Our fastest round by the fastest of any peer."""
        peers = [self.against] if self.against else self._of(is_ours=False)
        return min(map(_fastest, self._of(is_ours=True))) / min(map(_fastest, peers))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self)
        del found["against"]
        return found | {
            "seconds": self.seconds,
            "best": self.best[0],
            "best_peer": {"name": self.best_peer[0], "seconds": _median(self.best_peer)},
            "ratio": self.ratio,
            "ratio_of_fastest": self.ratio_of_fastest,
        }

    def lines(self) -> list[str]:
        """A block of a readable table."""
        ratio = f"   ratio {self.ratio:.3f}, of fastest rounds {self.ratio_of_fastest:.3f}"
        target = "" if self.target is None else f" (target {self.target:g})"
        against = "" if self.against is None else f" against {self.against[0]}, {_ms(_median(self.against))}"
        lines = [f"{self.case}   [load {self.load:.1f}]{ratio}{target}{against}"]
        for name, seconds in sorted(self.seconds.items(), key=lambda pair: pair[1]):
            work = self.work.get(name)
            asked = (
                ""
                if work is None
                else (f"   {work.requests:,} requests, {work.received_bytes:,} bytes in, {work.sent_bytes:,} out")
            )
            fastest = _ms(min(self.samples[name]))
            lines.append(f"    {name:22}{_ms(seconds):>14}   fastest {fastest:>13}{asked}")
        return [*lines, *(f"    {note}" for note in self.notes)]

    def _of(self, *, is_ours: bool) -> list[tuple[str, Sequence[float]]]:
        return [pair for pair in self.samples.items() if (pair[0].split()[0] == OURS) == is_ours]


def _fastest(pair: tuple[str, Sequence[float]]) -> float:
    return min(pair[1])


def _median(pair: tuple[str, Sequence[float]]) -> float:
    return statistics.median(pair[1])


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.3f} ms"

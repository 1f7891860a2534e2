"""Counts what the server does, in Prometheus's text format. No label contains any part of a statement's text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)


class ServerMetrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._sums: Counter[str] = Counter()

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to a counter."""
        self._counts[name, tuple(sorted(labels.items()))] += by

    def observe(self, name: str, seconds: float) -> None:
        """Add a duration to a histogram."""
        for bound in (*_SECONDS, float("inf")):
            self._buckets[name, bound] += seconds <= bound
        self._counts[f"{name}_count", ()] += 1
        self._sums[name] += seconds  # type: ignore[assignment]  # a Counter may count seconds

    def as_text(self, gauges: Mapping[str, float]) -> str:
        """All counters, and the current gauges."""
        lines = []
        for (name, labels), value in sorted(self._counts.items()):
            shown = ",".join(f'{key}="{text}"' for key, text in labels)
            lines.append(f"underlay_{name}{f'{{{shown}}}' if shown else ''} {value}")
        for (name, bound), value in sorted(self._buckets.items()):
            shown = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f'underlay_{name}_bucket{{le="{shown}"}} {value}')
        lines += [f"underlay_{name}_sum {seconds:.6f}" for name, seconds in sorted(self._sums.items())]
        lines += [f"underlay_{name} {value:g}" for name, value in sorted(gauges.items())]
        return "\n".join(lines) + "\n"

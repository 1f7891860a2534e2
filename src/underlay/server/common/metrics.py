"""Counts what the server does, in Prometheus's text format. No label contains any part of a statement's text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)
_PREFIX = "underlay_"
COUNTERS = {
    "statements_total": "Statements that ended, by state, engine and code of the problem.",
    "rows_total": "Rows of results.",
    "result_bytes_total": "Bytes of results.",
    "blocks_total": "Blocks of the tables that statements scanned.",
    "blocks_read_total": "Blocks that statements read.",
    "bytes_read_total": "Bytes that statements read from tables.",
    "hot_rows_total": "Rows that were committed to hot partitions.",
    "refused_total": "Requests that were refused with 429, by code.",
}
HISTOGRAMS = {
    "queue_seconds": "How long statements waited for their turn.",
    "run_seconds": "How long statements ran.",
    "hot_write_seconds": "How long rows for hot partitions took from their last byte to their commit.",
    "stop_seconds": "How long statements took to end once they were stopped.",
}
GAUGES = {
    "statements_running": "Statements that run now.",
    "statements_waiting": "Statements that wait for their turn.",
    "statements_known": "Statements that can be asked for, ended ones too.",
    "workers_alive": "Worker processes that can take a statement.",
    "spool_bytes": "Bytes of kept results.",
    "spark_alive": "Whether the Spark process runs.",
}


class ServerMetrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._sums: dict[str, float] = dict.fromkeys(HISTOGRAMS, 0.0)

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to a counter of COUNTERS."""
        self._counts[name, tuple(sorted(labels.items()))] += by

    def observe(self, name: str, seconds: float) -> None:
        """Add a duration to a histogram of HISTOGRAMS."""
        for bound in (*_SECONDS, float("inf")):
            self._buckets[name, bound] += seconds <= bound
        self._sums[name] += seconds

    def as_text(self, gauges: Mapping[str, float]) -> str:
        """All counters and histograms, and the current GAUGES."""
        lines = []
        for name, told in COUNTERS.items():
            lines += _head(name, "counter", told)
            lines += [
                f"{_PREFIX}{name}{_shown(labels)} {value}"
                for (other, labels), value in sorted(self._counts.items())
                if other == name
            ]
        for name, told in HISTOGRAMS.items():
            lines += _head(name, "histogram", told)
            for bound in (*_SECONDS, float("inf")):
                shown = "+Inf" if bound == float("inf") else f"{bound:g}"
                lines.append(f'{_PREFIX}{name}_bucket{{le="{shown}"}} {self._buckets[name, bound]}')
            lines.append(f"{_PREFIX}{name}_sum {self._sums[name]:.6f}")
            lines.append(f"{_PREFIX}{name}_count {self._buckets[name, float('inf')]}")
        for name, told in GAUGES.items():
            lines += [*_head(name, "gauge", told), f"{_PREFIX}{name} {gauges[name]:g}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, told: str) -> list[str]:
    return [f"# HELP {_PREFIX}{name} {told}", f"# TYPE {_PREFIX}{name} {kind}"]


def _shown(labels: tuple[tuple[str, str], ...]) -> str:
    pairs = ",".join(f'{key}="{text}"' for key, text in labels)
    return f"{{{pairs}}}" if pairs else ""

"""How long each test file takes, so that the longest begin first and all processes end together.

`make durations` measures anew. Only the ratios matter, and only to the order: a file that is not listed yet counts as
a short one.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

RECORD = Path(__file__).with_suffix(".json")
LEAST_SECONDS = 0.5
"""Files that take less are not listed."""


def known() -> dict[str, float]:
    """Seconds by file, as they were measured once."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


class Recorder:
    """A plugin of the process that is told of every test; writes what it heard at the end."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.split("::", 1)[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        files = {name: round(seconds, 1) for name, seconds in self._seconds.most_common() if seconds >= LEAST_SECONDS}
        self._target.write_text(json.dumps(files, indent=0) + "\n")

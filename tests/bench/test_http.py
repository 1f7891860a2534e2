"""`bench.http` runs small: its answers are checked and its errors counted, never its times."""

from __future__ import annotations

from pathlib import Path

from bench.http import QUICK, run


def test_clients_meet_no_error_and_every_case_is_measured(tmp_path: Path):
    found = run(QUICK, tmp_path)
    assert found["clients"]["statements"] >= QUICK.clients
    assert found["clients"]["errors"] == 0
    assert found["stream"]["bytes"] > QUICK.stream_bytes
    assert {"http p50 ms", "in process p50 ms", "workers CPU ms"} <= found["query"].keys()

"""Large results: the server holds a few parts of them, whatever their size."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.server.conftest import Served, make_lake
from tests.server.operations.command import ServerProcess, command
from underlay.server.statements.process import WorkerProcess
from underlay.server.worker.messages import Frame, FrameKind

MB = 1 << 20
GB = 10**9
ARROW, CSV, JSON = "application/vnd.apache.arrow.stream", "text/csv", "application/json"
WIDE = "select i, i * 3 as j, repeat(chr((65 + i % 26)::int), 84) as s from range({}) t(i)"
"""About 100 bytes a row."""
AHEAD_BYTES = 24 * MB
"""What may lie between an engine and a client that does not read: buffers of two sockets, and a part or two."""
ROUND_TRIPS = 300


@pytest.mark.parametrize("accept", [ARROW, CSV])
def test_the_engine_does_not_run_ahead_of_a_client_that_does_not_read(
    served: Served, accept: str, monkeypatch: pytest.MonkeyPatch
):
    """Of 50 MB, while a client reads the first part only and others are answered."""
    came = [0]
    frames = WorkerProcess.frames

    async def counted(worker: WorkerProcess) -> AsyncIterator[Frame]:
        async for frame in frames(worker):
            came[0] += len(frame.payload) if frame.kind is FrameKind.DATA else 0
            yield frame

    monkeypatch.setattr(WorkerProcess, "frames", counted)
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    with served.client() as client, served.client() as other:
        with client.stream("POST", "/v1/sql", json={"sql": WIDE.format(500_000)}, headers=headers) as answer:
            parts = answer.iter_raw()
            read = len(next(parts))
            for _ in range(ROUND_TRIPS):
                assert other.get("/healthz").status_code == 200
            assert came[0] - read < AHEAD_BYTES
            read += sum(map(len, parts))
        assert read == came[0] > 45 * MB


@pytest.mark.storm
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("accept", "rows"), [(ARROW, 10_000_000), (CSV, 10_000_000), (JSON, 9_500_000)])
def test_a_gigabyte_streams_in_constant_memory(tmp_path: Path, accept: str, rows: int):
    """Of the server and of the worker, from the first 100 MB on."""
    make_lake(tmp_path / "lake")
    with command(tmp_path, "--workers", "1", "--timeout", "3000") as server, server.client() as client:
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        sizes: list[dict[int, int]] = []
        read = 0
        with client.stream("POST", "/v1/sql", json={"sql": WIDE.format(rows)}, headers=headers) as answer:
            for part in answer.iter_raw():
                read += len(part)
                if read > 100 * MB * (1 + len(sizes)):
                    sizes.append(resident(server))
        assert read > GB
        assert len(sizes) >= 9
        for pid in sizes[0]:
            used = [size[pid] for size in sizes]
            print(f"{accept} {pid}: {[one // MB for one in used]} MB")
            assert max(used) - min(used) <= 50 * MB


def resident(server: ServerProcess) -> dict[int, int]:
    pids = [server.process.pid, *server.workers]
    page = os.sysconf("SC_PAGE_SIZE")
    return {pid: int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page for pid in pids}


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_a_kept_gigabyte_is_read_in_windows_in_constant_memory(tmp_path: Path):
    make_lake(tmp_path / "lake")
    rows = 10_000_000
    with command(tmp_path, "--workers", "1", "--timeout", "3000") as server, server.client() as client:
        begun = client.post("/v1/statements", json={"sql": WIDE.format(rows), "wait": 0, "timeout": 3000}).json()
        place = f"/v1/statements/{begun['id']}"
        while (found := client.get(place, params={"wait": 60}).json())["state"] in ("queued", "running"):
            pass
        assert found["row_count"] == rows
        window(client, place, 0)
        first = resident(server)
        for offset in range(0, rows, rows // 40):
            assert window(client, place, offset) == offset
        last = resident(server)
        assert max(last[pid] - first[pid] for pid in first) <= 50 * MB


def window(client: httpx.Client, place: str, offset: int) -> int:
    found = client.get(f"{place}/rows", params={"offset": offset, "limit": 1000}).json()
    assert len(found["rows"]) == 1000
    return found["rows"][0][0]

"""`underlay serve` as a process of its own, so that it can be killed."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.cli.command import SCRIPT
from tests.server.conftest import PATIENCE
from underlay.server.access.rights import Rights
from underlay.server.access.tokens import TokenFile


class ServerProcess(NamedTuple):
    url: str
    process: subprocess.Popen[str]
    token: str

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=PATIENCE, headers={"Authorization": f"Bearer {self.token}"})

    @property
    def workers(self) -> list[int]:
        pid = self.process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def command(folder: Path, *options: str) -> Iterator[ServerProcess]:
    """A server of the lake in `folder/lake` that may be written to, with its spool in `folder/spool`. Killed at the
    end if it still runs."""
    tokens = TokenFile(folder / "tokens.json")
    known = {one.name for one in tokens.every()} if (folder / "tokens.json").exists() else set()
    name = f"token {len(known)}"
    _, token = tokens.create(name, Rights(read=("*",), write=("*",), is_admin=True), datetime.now(UTC))
    always = ["--port", "0", "--lake", "lake", "--spool", "spool", "--tokens", "tokens.json", "--writable"]
    run = [SCRIPT, "serve", "--engine", "duckdb", *always, *options]
    with subprocess.Popen(run, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"https?://127\.0\.0\.1:\d+", said)
            assert found, said + process.stderr.read()
            yield ServerProcess(found[0], process, token)
        finally:
            process.kill()

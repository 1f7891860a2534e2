"""The `underlay` command, in this process for speed or as installed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from math import inf
from pathlib import Path
from typing import NamedTuple

import pytest

from underlay.cli import app, main

SCRIPT = Path(sys.executable).with_name("underlay")


class Outcome(NamedTuple):
    code: int
    output: bytes
    words: str

    @property
    def text(self) -> str:
        return self.output.decode()

    @property
    def objects(self) -> list[dict]:
        return [json.loads(line) for line in self.output.splitlines()]


def underlay(*arguments: object, stdin: bytes = b"") -> Outcome:
    """Run the command's entry point here, its streams caught. Like a process that ends, it leaves nothing to be done: a
    registry has all that was written, and what was only read is never applied."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    words = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["underlay", *map(str, arguments)])
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", words)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        patch.setenv("COLUMNS", "80")
        patch.setattr(app, "_REGISTRY_SECONDS", 120.0)
        patch.setattr("underlay.registry.follow.follower.READER_DELAY_SECONDS", inf)
        patch.setattr("underlay.cli.ingest.progress._LINE_SECONDS", inf)
        with pytest.raises(SystemExit) as ended:
            main.run()
    code = ended.value.code
    assert isinstance(code, int)
    return Outcome(code, output.buffer.getvalue(), words.getvalue())


def installed(*arguments: object, **options) -> subprocess.CompletedProcess[bytes]:
    """Run the installed script."""
    return _run([SCRIPT], arguments, options)


def patient(*arguments: object, **options) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own that waits for a registry as long as a slow machine needs."""
    code = "from underlay.cli import app, main; app._REGISTRY_SECONDS = 120.0; main.run()"
    return _run([sys.executable, "-c", code], arguments, options)


def _run(command: list, arguments: tuple, options: dict) -> subprocess.CompletedProcess[bytes]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([*command, *map(str, arguments)], **streams, timeout=240, check=False)

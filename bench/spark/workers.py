"""Workers of all systems, asked turn by turn."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from bench.spark.environment import Environment
from bench.spark.worker import Reply, Request

_ROOT = Path(__file__).parents[2]
_LOG_TAIL = 3_000


class WorkerProcess:
    """A process of a module that serves requests; it starts while others work. Its words go to a log in `written`."""

    def __init__(self, module: str, system: str, environment: Environment, source: Path, written: Path) -> None:
        self._system = system
        written.mkdir(parents=True, exist_ok=True)
        self._log = written / "log"
        path = [str(found) for found in (environment.python_path, _ROOT) if found is not None]
        command = [sys.executable, "-W", "ignore", "-m", module, system]
        places = ["--source", str(source), "--written", str(written), "--jars", *map(str, environment.jars)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *places],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def ask(self, request: Request) -> Reply:
        """Have a request done."""
        if self._process.stdin is None:
            raise AssertionError("a worker has a stdin")
        self._process.stdin.write(msgspec.json.encode(request) + b"\n")
        self._process.stdin.flush()
        return self._reply()

    def _reply(self) -> Reply:
        line = self._process.stdout.readline() if self._process.stdout is not None else b""
        if not line:
            self._process.wait()
            words = self._log.read_text(errors="replace")[-_LOG_TAIL:]
            raise AssertionError(f"the worker of {self._system} ended:\n{words}")
        return msgspec.json.decode(line, type=Reply)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


class Workers:
    """A living worker for each system, all started when one is first asked."""

    def __init__(
        self,
        systems: tuple[str, ...],
        environment: Environment,
        source: Path,
        written: Path,
        *,
        module: str = "bench.spark.worker",
    ) -> None:
        self.systems = systems
        self._module = module
        self._environment = environment
        self._source = source
        self._written = written
        self._living: dict[str, WorkerProcess] = {}
        self._stack = ExitStack()

    def ask(self, system: str, request: Request) -> Reply:
        """Have one system do a request."""
        self._start()
        return self._living[system].ask(request)

    def ask_all(self, request: Request) -> dict[str, Reply]:
        """Have every system do the same."""
        return {system: self.ask(system, request) for system in self.systems}

    def _start(self) -> None:
        for system in self.systems:
            if system not in self._living:
                self._living[system] = self._stack.enter_context(self.new(system))

    def new(self, system: str) -> WorkerProcess:
        """Another process of a system, for the caller to end."""
        return WorkerProcess(self._module, system, self._environment, self._source, self._written / system)

    def close(self) -> None:
        """End the living ones."""
        self._living.clear()
        self._stack.close()


def take_turns(ways: Mapping[str, Callable[[int], Reply]], *, warm_ups: int, rounds: int) -> dict[str, list[Reply]]:
    """The replies of each way in each round, in an order that rotates. Rounds of warming up have negative numbers."""
    names = list(ways)
    replies: dict[str, list[Reply]] = {name: [] for name in names}
    for number in range(-warm_ups, rounds):
        begin = number % len(names)
        for name in names[begin:] + names[:begin]:
            found = ways[name](number)
            if number >= 0:
                replies[name].append(found)
    return replies

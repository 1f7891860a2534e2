"""A process that has everything loaded, and forks writers that append rows to the table of a lake.

It reads commands from its input: `write ROOT FIRST COUNT` forks a writer that prints `pid N` and then appends the ids
FIRST to FIRST + COUNT - 1 one by one, printing each with its version; `wait` waits for all writers and prints `gone`
and the number of those that failed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from types import TracebackType

import psycopg  # noqa: F401  # loaded once, not by each child

import underlay
import underlay.registry.follow.apply_seen
from tests.end_to_end.lakes import NAME, rows

REPOSITORY = Path(__file__).parents[2]


def tell(word: str | int, number: int) -> None:
    """One write for each line, so that those of many writers do not mix."""
    os.write(1, f"{word} {number}\n".encode())


def append_rows(root: str, first: int, count: int) -> None:
    tell("pid", os.getpid())
    table = underlay.connect(root).table(NAME)
    for number in range(first, first + count):
        tell(number, table.append(rows([number])).version)


def serve() -> None:
    rows([0])  # or each child would load pandas, for which Arrow looks when it first meets a list
    children: list[int] = []
    for command in map(str.split, sys.stdin):
        if command[0] == "write":
            child = os.fork()
            if not child:
                append_rows(command[1], int(command[2]), int(command[3]))
                os._exit(0)  # the input's buffer is the host's
            children.append(child)
        else:
            tell("gone", sum(os.waitpid(child, 0)[1] != 0 for child in children))
            children.clear()


class Writers:
    """Such a process, as a test drives it."""

    def __init__(self, root: Path, registry: str = "none") -> None:
        self.root = root
        self._host = Popen(
            [sys.executable, "-m", "tests.end_to_end.writer"],
            cwd=REPOSITORY,
            stdin=PIPE,
            stdout=PIPE,
            text=True,
            env={**os.environ, "UNDERLAY_REGISTRY": registry},
        )

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._host.kill()
        self._host.communicate()

    def write(self, first: int, count: int) -> None:
        self._tell(f"write {self.root} {first} {count}")

    def line(self) -> tuple[str, int]:
        """What a writer prints next."""
        assert self._host.stdout is not None
        word, number = self._host.stdout.readline().split()
        return word, int(number)

    def rest(self) -> tuple[dict[int, int], int]:
        """When all writers are gone: ids and versions that were not read yet, and how many writers failed."""
        self._tell("wait")
        found: dict[int, int] = {}
        while (line := self.line())[0] != "gone":
            if line[0] != "pid":
                found[int(line[0])] = line[1]
        return found, line[1]

    def _tell(self, command: str) -> None:
        assert self._host.stdin is not None
        self._host.stdin.write(f"{command}\n")
        self._host.stdin.flush()


if __name__ == "__main__":
    serve()

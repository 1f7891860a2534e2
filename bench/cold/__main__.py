"""How long from a process that knows nothing to the first answer?

    python -m bench.cold underlay /tmp/folder 10000

Imports first, then times opening the table and asking for half a block by time; the files are in the page cache.
Prints seconds and a digest of the answer as JSON. `bench.tables` starts it, once for each measurement.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.common.questions import digest, make_questions
from bench.systems.known import SYSTEMS, load_system


def measure_cold(folders: dict[str, Path], file_count: int, rounds: int) -> dict[str, Any]:
    """Seconds of each system in fresh processes, turn by turn, and the answers' digests."""
    seconds: dict[str, list[float]] = {name: [] for name in folders}
    digests: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, folder in folders.items():
            found = _run([name, str(folder), str(file_count)])
            seconds[name].append(found["seconds"])
            digests[name] = found["digest"]
    return {"seconds": seconds, "digests": digests}


def _run(arguments: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.cold", *arguments]
    done = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", type=int)
    arguments = parser.parse_args()
    question = make_questions(arguments.files)["time"]
    system = load_system(arguments.system)(arguments.folder)
    begin = time.perf_counter()
    ask = next(iter(system.ways().values()))
    answer = ask(question)
    seconds = time.perf_counter() - begin
    json.dump({"seconds": seconds, "digest": digest(answer)}, sys.stdout)


if __name__ == "__main__":
    main()

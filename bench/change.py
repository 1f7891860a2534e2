"""What does it cost to change 1,000 rows of a large table, and what does the next query pay for it?

Delta Lake (delta-rs), Iceberg (PyIceberg) and DuckLake do the same changes in the same run, turn by turn, on seeded
rows of 20 columns with ascending ids: upserts of 1,000 adjacent rows and of 1,000 rows spread over all blocks, and
deletes and updates of 1,000 rows by a condition. After the last round all systems must have the same rows. Warm: the
table was changed once before. Wall and CPU seconds are of the fastest round. Then a full aggregate of our changed table
against the same aggregate of one that was written anew, and the peak memory of a process that upserts into a table of a
tenth of the rows and into all of it.

    python -m bench.change [--quick] [--rounds 3] [--only underlay ducklake]

Writes bench/out/change.json and prints a table. Bytes are ours: chunks read, files and sidecars written.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.changes.rows import Scale, adjacent, file_rows, spread
from bench.changes.systems import CHANGING, Changing, Ours
from bench.common.timing import save
from underlay.change.update.result import Changed

QUICK = Scale(files=3, blocks=2, block_rows=1000, changed=50, rounds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The fastest round of a system at one case."""

    case: str
    system: str
    wall_seconds: float
    cpu_seconds: float
    changed: Changed | None = None


def run(
    scale: Scale, folder: Path, names: Collection[str], tell: Callable[[list[Cost]], object] = len
) -> tuple[list[Cost], dict[str, Any]]:
    """All cases with these systems, each told when it is done; and the next query and the memory of ours."""
    systems = [kind(folder / kind.name) for kind in CHANGING if kind.name in names]
    for system in systems:
        system.create(scale, (file_rows(scale, number) for number in range(scale.files)))
    costs: list[Cost] = []
    for case, change in _cases(scale).items():
        found = _measure(case, change, systems, scale.rounds)
        tell(found)
        costs += found
    totals = {system.name: system.total() for system in systems}
    counts, sums = {found[0] for found in totals.values()}, [found[1] for found in totals.values()]
    if len(counts) > 1 or max(sums) - min(sums) > 1e-9 * max(sums):
        raise AssertionError(f"other rows: {totals}")
    extra: dict[str, Any] = {}
    for system in systems:
        if isinstance(system, Ours):
            extra["next_query"] = _next_query(system, scale, folder)
            extra["peak_bytes"] = _memory(scale, folder)
    return costs, extra


def _cases(scale: Scale) -> dict[str, Callable[[Changing, int], object]]:
    def delete(system: Changing, number: int) -> object:
        first = scale.rows * (2 * number + 2) // 65
        return system.delete(first, first + scale.changed)

    def update(system: Changing, number: int) -> object:
        first = scale.rows * (2 * number + 3) // 67
        return system.update(first, first + scale.changed)

    return {
        "upsert adjacent": lambda system, number: system.upsert(adjacent(scale, number)),
        "upsert spread": lambda system, number: system.upsert(spread(scale, number)),
        "delete by condition": delete,
        "update by condition": update,
    }


def _measure(
    case: str, change: Callable[[Changing, int], object], systems: Sequence[Changing], rounds: int
) -> list[Cost]:
    found: dict[str, list[Cost]] = {system.name: [] for system in systems}
    for number in range(rounds + 1):
        for system in systems:
            wall, cpu = time.perf_counter(), time.process_time()
            done = change(system, number)
            cost = Cost(
                case=case,
                system=system.name,
                wall_seconds=time.perf_counter() - wall,
                cpu_seconds=time.process_time() - cpu,
                changed=done if isinstance(done, Changed) else None,
            )
            if number:
                found[system.name].append(cost)
    return [
        Cost(
            case=case,
            system=name,
            wall_seconds=min(cost.wall_seconds for cost in costs),
            cpu_seconds=min(cost.cpu_seconds for cost in costs),
            changed=costs[-1].changed,
        )
        for name, costs in found.items()
    ]


def _next_query(changed: Ours, scale: Scale, folder: Path) -> dict[str, float]:
    """Fastest seconds of a full aggregate of the changed table, and of one with the same rows and no deletions."""
    anew = Ours(folder / "anew")
    rows = changed.table.scan().to_arrow().sort_by("id")
    cuts = range(0, rows.num_rows, scale.file_rows)
    anew.create(scale, (rows.slice(first, scale.file_rows) for first in cuts))
    del rows
    if changed.total()[0] != anew.total()[0]:
        raise AssertionError("the table written anew has other rows")
    found: dict[str, float] = {}
    for _ in range(max(3, 2 * scale.rounds)):
        for name, system in (("changed", changed), ("anew", anew)):
            wall, cpu = time.perf_counter(), time.process_time()
            system.total()
            costs = {f"{name} wall": time.perf_counter() - wall, f"{name} CPU": time.process_time() - cpu}
            found |= {key: min(value, found.get(key, value)) for key, value in costs.items()}
    return found | {f"{kind} ratio": found[f"changed {kind}"] / found[f"anew {kind}"] for kind in ("wall", "CPU")}


def _memory(scale: Scale, folder: Path) -> dict[str, int]:
    """Peak bytes of a process that upserts spread rows, above what it had with the lake open, by the table's rows."""
    small = Scale(files=max(1, scale.files // 10), blocks=scale.blocks, block_rows=scale.block_rows)
    Ours(folder / "small").create(small, (file_rows(small, number) for number in range(small.files)))
    found = {}
    for size, place in ((small, "small"), (scale, Ours.name)):
        command = [
            sys.executable,
            "-m",
            "bench.changes.memory",
            str(folder / place),
            str(size.rows),
            str(scale.changed),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[f"{size.rows:,} rows"] = int(done.stdout)
    return found


def lines(costs: Sequence[Cost]) -> list[str]:
    """A readable table; ratios are a peer's seconds by ours."""
    shown = []
    for case in dict.fromkeys(cost.case for cost in costs):
        of_case = [cost for cost in costs if cost.case == case]
        ours = next((cost for cost in of_case if cost.system == Ours.name), None)
        shown.append(f"{case}   [load {os.getloadavg()[0]:.1f}]")
        for cost in of_case:
            times = f"wall {cost.wall_seconds * 1000:9.1f} ms   CPU {cost.cpu_seconds * 1000:9.1f} ms"
            ratio = ""
            if ours is not None and cost is not ours:
                wall, cpu = cost.wall_seconds / ours.wall_seconds, cost.cpu_seconds / ours.cpu_seconds
                ratio = f"   {wall:.1f} × and {cpu:.1f} × ours"
            if cost.changed is not None:
                done = cost.changed
                ratio = (
                    f"   {done.blocks_read} of {done.blocks_total} blocks, {done.bytes_read:,} bytes read, "
                    f"{done.bytes_written:,} written"
                )
            shown.append(f"    {cost.system:12}{times}{ratio}")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: the counts matter, not the times")
    parser.add_argument("--rounds", type=int, default=3)
    names = [kind.name for kind in CHANGING]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="some systems")
    parser.add_argument("--folder", type=Path, default=None, help="where tables are made; a temporary folder")
    chosen = parser.parse_args()
    scale = QUICK if chosen.quick else Scale(rounds=chosen.rounds)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        costs, extra = run(scale, Path(folder), chosen.only, lambda some: print("\n".join(lines(some)), flush=True))
    for name, value in extra.items():
        print(f"{name}: {json.dumps(value)}")
    result = {"scale": asdict(scale), "costs": [asdict(cost) for cost in costs], **extra}
    print(f"written to {save('change', result)}")


if __name__ == "__main__":
    main()

"""`underlay hot verify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from underlay.cli.common.output import print_json, say, show_count
from underlay.cli.hot.partitions import SidecarPartition, partitions_in
from underlay.errors import Inconsistent, UnderlayError
from underlay.pm.read.rows import read_rows
from underlay.pm.verify import verify

_REPAIRED = "The next writer makes the sidecar anew."


def verify_partitions(path: Path, *, is_deep: bool, json: bool) -> None:
    """Check each partition; exit code 1 when any has a problem."""
    is_ours, found, native = partitions_in(path)
    bad = 0
    for one in found:
        problems = list(_problems(one, is_ours=is_ours, is_deep=is_deep))
        bad += bool(problems)
        texts = [str(problem) for problem in problems]
        if json:
            print_json({"partition": one.name, "directory": str(one.directory), "ok": not texts, "problems": texts})
        elif texts:
            print(f"FAILED  {one.directory}")
            for text in texts:
                print(f"        {text}")
        else:
            print(f"ok      {one.directory}")
    if not json:
        more = f"; {show_count(len(native), 'native partition')} not looked at" if native else ""
        say(f"{len(found) - bad} of {show_count(len(found), 'partition')} sound{more}")
    if bad:
        raise typer.Exit(1)


def _problems(one: SidecarPartition, *, is_ours: bool, is_deep: bool) -> Iterator[UnderlayError]:
    try:
        schema = one.schema(is_ours=is_ours)  # reads the footer that was committed
    except UnderlayError as error:
        yield error
        return
    try:
        sidecar = one.sidecar()
        rows = int(sidecar.num_rows.sum())
        if rows != one.row_count:
            yield Inconsistent(
                "_txn and the sidecar count different rows",
                place=str(one.directory),
                expected=one.row_count,
                found=rows,
            )
        if is_deep:
            found = read_rows(sidecar, one.data, schema=schema).num_rows
            if found != rows:
                yield Inconsistent("rows are missing", place=str(one.data), expected=rows, found=found)
        newest = verify(one.directory / "_pm", one.data, deep=is_deep)
        yield from newest
    except UnderlayError as error:
        if is_ours:
            error.hint = _REPAIRED
        yield error

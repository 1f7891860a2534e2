"""Directories of QuestDB tables, put together from the genuine states of their partitions."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.genuine import GENERATIONS, fixtures
from underlay.hot.txn.file import read_txn
from underlay.hot.txn.partition_names import Granularity, directory_name, partition_name


@dataclass(frozen=True, slots=True, kw_only=True)
class GenuineState:
    """A Parquet partition of a table after one step: files whose names end in `suffix`."""

    folder: Path
    suffix: str
    directory: str

    def __str__(self) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}{self.suffix}"

    @property
    def txn(self) -> Path:
        """The table's `_txn` at that moment."""
        return self.folder / f"_txn{self.suffix}"

    def rows(self) -> list[dict[str, object]]:
        """The rows as QuestDB returns them."""
        found = json.loads((self.folder / f"rows{self.suffix}.json").read_text())
        names = [column["name"] for column in found["columns"]]
        return [dict(zip(names, row, strict=True)) for row in found["rows"]]


def genuine_states() -> list[GenuineState]:
    """Every state of every case."""
    found = []
    for version in GENERATIONS:
        for case in sorted((fixtures() / "questdb" / version).glob("*/case.json")):
            described = json.loads(case.read_text())
            for snapshot in described["snapshots"]:
                suffix = f".{snapshot['step']}" if (case.parent / f"_txn.{snapshot['step']}").exists() else ""
                found.append(GenuineState(folder=case.parent, suffix=suffix, directory=snapshot["directory"]))
    return found


def together(state: GenuineState) -> list[GenuineState]:
    """This partition and the others of the same table at the same version."""
    txn = state.txn.read_bytes()
    alike = [one for one in genuine_states() if one.folder == state.folder and one.txn.read_bytes() == txn]
    return list({one.directory: one for one in alike}.values())


def make_table(root: Path, states: list[GenuineState]) -> Path:
    """A table's directory with these partitions, at the version of the last one. Other partitions are native."""
    table = root / f"{states[0].folder.name}~7"
    table.mkdir(parents=True)
    last = states[-1]
    shutil.copy(last.txn, table / "_txn")
    for state in states:
        (table / state.directory).mkdir()
        for name in ("data.parquet", "_pm"):
            shutil.copy(state.folder / f"{name}{state.suffix}", table / state.directory / name)
    unit = "ns" if last.folder.name == "nanos" else "us"
    for one in read_txn(table / "_txn").partitions:
        name = directory_name(partition_name(one.timestamp, Granularity.DAY, unit), one.name_txn)
        (table / name).mkdir(exist_ok=True)
    return table

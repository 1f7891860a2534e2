"""What a table consists of, read from its objects with none of the code that wrote them."""

from __future__ import annotations

import io
import json
import re

import pyarrow.parquet as pq

from tests.table.checker import Checker, State
from underlay.store.store import Store

ROOT = re.compile(r"(?P<folder>.+)/_index/(?P<version>\d{20})\.root")


def check_chain(store: Store) -> tuple[str, list[dict[str, object]]]:
    """The folder of the one table, and its roots: without a hole, each the child of the one before; no commit and no
    token twice, as far as their roots have not expired."""
    found = [match for one in store.list_objects() if (match := ROOT.fullmatch(one.key))]
    (folder,) = {match["folder"] for match in found}
    assert sorted(int(match["version"]) for match in found) == list(range(len(found))), "a hole in the chain"
    roots = []
    tokens: set[str] = set()
    for version in range(len(found)):
        root = json.loads(bytes(store.get(f"{folder}/_index/{version:020}.root")[0]))
        assert root["version"] == version
        assert root["parent_id"] == (roots[-1]["commit_id"] if roots else None), f"version {version} has another parent"
        assert not roots or root["committed_us"] > roots[-1]["committed_us"]
        now = {record[0] for record in root.get("delta", {}).get("sources", ()) if record[0].startswith("token:")}
        assert tokens.isdisjoint(now), "a token was committed twice"
        tokens |= now
        roots.append({name: root[name] for name in ("commit_id", "committed_us")})
    assert len({root["commit_id"] for root in roots}) == len(roots), "a commit id occurs twice"
    return folder, roots


def read_rows(store: Store, folder: str, version: int) -> list[tuple[int, int, int]]:
    """Id, owner and value of every row of a version, by plain Parquet and the positions that are deleted."""
    root = json.loads(bytes(store.get(f"{folder}/_index/{version:020}.root")[0]))
    state: State = Checker(store)._stored(folder, root)
    rows = []
    for name, (_, count, gone) in state.items():
        data = bytes(store.get(f"{folder}/{name}")[0])
        table = pq.read_table(io.BytesIO(data), columns=["id", "owner", "value"])
        assert table.num_rows == count
        columns = [table[column].to_pylist() for column in ("id", "owner", "value")]
        rows += [row for place, row in enumerate(zip(*columns, strict=True)) if place not in gone]
    assert len(rows) == root["row_count"]
    return rows

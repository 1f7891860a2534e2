"""Sidecars that QuestDB wrote: each decodes, each chain walks, each version is written back byte for byte."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tests.genuine import label, sidecars
from underlay.pm.format.blocks import block_value
from underlay.pm.format.encode import AppendedTail, append, create
from underlay.pm.format.footers import walk
from underlay.pm.format.sidecar import committed_size, decode


@pytest.mark.parametrize("path", sidecars(), ids=label)
def test_every_version_is_written_back_byte_for_byte(path: Path):
    data = path.read_bytes()
    sizes = [footer.size for footer in walk(data, committed_size(data))][::-1]
    first = decode(data, size=sizes[0])
    written = create(
        first.header.value(), [block_value(first, i) for i in range(first.row_group_count)], first.version_fields()
    )
    assert written[8:] == data[8 : sizes[0]]
    for previous, size in itertools.pairwise(sizes):
        assert any(tail.data == data[tail.begin : size] for tail in rewritten(data, previous, size))


def rewritten(data: bytes, previous: int, size: int) -> list[AppendedTail]:
    """What our own append writes for the version of `size` bytes, behind the one before it.

    A crash may have left a dead tail whose length nothing records, and blocks are padded to 8 bytes: so there are
    up to eight places where the writer may have begun.
    """
    anchor, wanted = decode(data, size=previous), decode(data, size=size)
    kept = {offset: i for i, offset in enumerate(anchor.block_offsets.tolist())}
    blocks = [
        kept[offset] if offset in kept else block_value(wanted, i)
        for i, offset in enumerate(wanted.block_offsets.tolist())
    ]
    new = [offset for offset in wanted.block_offsets.tolist() if offset not in kept]
    last = min(new, default=wanted.footer.offset)
    first = max(previous, last - 7)
    return [append(anchor, blocks, wanted.version_fields(), base=base) for base in range(first, last + 1)]


def test_a_dead_footer_is_passed_over(fixtures: Path):
    folder = fixtures / "questdb" / "10.0.0" / "chain_dead_tail"
    data = (folder / "_pm").read_bytes()
    states = json.loads((folder / "case.json").read_text())["snapshots"]
    committed = [s["txn_partition"]["word3"] for s in states if "set back" not in s["note"]]
    chain = [footer.parquet_size for footer in walk(data, committed_size(data))][::-1]
    assert chain == sorted(set(committed))


def test_a_header_ahead_of_the_transaction_resolves_the_committed_version(fixtures: Path):
    for version in ("9.4.3", "10.0.0"):
        folder = fixtures / "questdb" / version / "chain_dead_tail"
        ahead = (folder / "_pm.2").read_bytes()
        states = json.loads((folder / "case.json").read_text())["snapshots"]
        committed = states[1]["txn_partition"]["word3"]
        assert decode(ahead).parquet_size != committed
        assert decode(ahead, parquet_size=committed).parquet_size == committed
        assert int(decode(ahead, parquet_size=committed).num_rows.sum()) == states[1]["txn_partition"]["rows"]


def chains() -> list[Path]:
    return sorted({p.parent for p in sidecars() if p.name == "_pm.1"})


@pytest.mark.parametrize("folder", chains(), ids=label)
def test_a_late_sidecar_still_has_every_earlier_committed_version(folder: Path):
    states = json.loads((folder / "case.json").read_text())["snapshots"]
    last = (folder / "_pm").read_bytes()
    directory = states[-1]["directory"]
    for state in states:
        partition = state["txn_partition"]
        if state["directory"] != directory or "set back" in state.get("note", ""):
            continue
        sidecar = decode(last, parquet_size=partition["word3"])
        assert int(sidecar.num_rows.sum()) == partition["rows"]


def test_there_are_genuine_files_to_look_at():
    assert len(sidecars()) > 400
    assert len(chains()) >= 10

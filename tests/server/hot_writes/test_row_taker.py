"""What is behind the endpoints for rows: policies, and the life of a table's writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import underlay as ul
from underlay.errors import InvalidRequest
from underlay.ingest.line_protocol.values import Flavour
from underlay.ingest.rows.reading import NewColumnsPolicy
from underlay.server.common.hot_settings import HotSettings
from underlay.server.hot_writes.take import LinesRefused, RowTaker
from underlay.server.hot_writes.writers import HotWriters

NANOSECOND = 1_700_000_000 * 10**9


@pytest.fixture
def taker(tmp_path: Path) -> Iterator[Callable[[HotSettings], RowTaker]]:
    """What a server has behind its endpoints."""
    opened: list[HotWriters] = []
    with ul.connect(tmp_path / "lake", registry="none", hot=tmp_path / "hot") as lake:
        lake.initialise()

        def make(settings: HotSettings) -> RowTaker:
            opened.append(HotWriters(lake, settings))
            return RowTaker(opened[-1], settings)

        yield make
        for one in opened:
            one.close()


def take(taker: RowTaker, lines: str) -> int:
    return taker.take_lines(lines.encode(), Flavour.QUESTDB, "ns", None, lambda _: True, NANOSECOND)


@pytest.mark.parametrize("policy", ["error", "ignore"])
def test_policies_for_new_columns(tmp_path: Path, taker: Callable[[HotSettings], RowTaker], policy: NewColumnsPolicy):
    made = taker(HotSettings(folder=tmp_path / "hot", new_columns=policy, dataset="lab"))
    assert take(made, f"m a=1 {NANOSECOND}") == 1
    if policy == "error":
        with pytest.raises(LinesRefused, match="the table has no column b") as caught:
            take(made, f"m a=2,b=1 {NANOSECOND + 1000}")
        assert [(one.line, one.column) for one in caught.value.problems] == [(1, 7)]
    else:
        assert take(made, f"m a=2,b=1 {NANOSECOND + 1000}") == 1
        assert take(made, f"m b=1 {NANOSECOND + 2000}") == 1
    with ul.connect(tmp_path / "lake", registry="none", hot=tmp_path / "hot") as lake:
        found = lake.table("lab.m").to_arrow().sort_by("timestamp").column("a").to_pylist()
    assert found == ([1.0] if policy == "error" else [1.0, 2.0, None])


def test_rows_survive_their_writer_and_are_sealed_by_the_next(tmp_path: Path, taker: Callable[[HotSettings], RowTaker]):
    made = taker(HotSettings(folder=tmp_path / "hot"))
    take(made, f"m f=1 {NANOSECOND}\nm f=2 {NANOSECOND + 1000}")
    made._writers.close()
    with pytest.raises(InvalidRequest, match="stopping"):
        take(made, f"m f=3 {NANOSECOND}")
    with ul.connect(tmp_path / "lake", registry="none", hot=tmp_path / "hot") as lake, lake.table("hot.m").hot() as one:
        one.seal(everything=True)
    with ul.connect(tmp_path / "lake", registry="none") as lake:
        assert lake.table("hot.m").to_arrow().column("f").to_pylist() == [1.0, 2.0]


def test_a_table_that_was_dropped_and_made_again_gets_a_new_writer(
    tmp_path: Path, taker: Callable[[HotSettings], RowTaker]
):
    made = taker(HotSettings(folder=tmp_path / "hot", staleness_seconds=0.0))
    take(made, f"m f=1 {NANOSECOND}")
    with ul.connect(tmp_path / "lake", registry="none") as lake:
        lake.drop_table("hot.m")
    assert take(made, f"m f=3 {NANOSECOND}") == 1
    with ul.connect(tmp_path / "lake", registry="none", hot=tmp_path / "hot") as lake:
        assert lake.table("hot.m").to_arrow().column("f").to_pylist() == [3.0]

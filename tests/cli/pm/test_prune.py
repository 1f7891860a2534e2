"""`underlay pm prune`: row groups kept and dropped, bytes, totals."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.command import underlay
from tests.cli.conftest import Pair


def test_kept_and_dropped_row_groups_are_shown_with_reasons(trips: Pair):
    run = underlay("pm", "prune", trips.sidecar, "--where", "n >= 7 and pickup < '1970-01-01 14:00'")
    assert (run.code, run.words) == (0, "")
    lines = run.text.splitlines()
    assert lines[2].split(maxsplit=3) == ["0", "5", "drop", "n >= 7: max is 4"]
    assert [line.split()[2] for line in lines[3:6]] == ["keep", "keep", "drop"]
    assert lines[6].startswith("2 of 4 row groups may match: ")


def test_json_has_ranges_that_add_up_to_the_bytes(trips: Pair):
    run = underlay("pm", "prune", trips.sidecar, "--where", "n = 12", "--columns", "pickup,n", "--json")
    (plan,) = run.objects
    assert (plan["file"], plan["row_groups"], plan["kept"]) == (str(trips.sidecar), 4, [2])
    assert [drop["cause"] for drop in plan["dropped"]] == ["below", "below", "above"]
    metadata = pq.read_metadata(trips.data).row_group(2)
    expected = sum(metadata.column(i).total_compressed_size for i in (0, 2))
    assert plan["bytes"] == expected == sum(end - begin for begin, end in plan["ranges"])
    assert plan["total_bytes"] > plan["bytes"]


def test_several_files_end_with_a_total_in_spite_of_a_failure(trips: Pair, tmp_path: Path):
    run = underlay("pm", "prune", trips.sidecar, tmp_path / "none.pm", trips.sidecar, "--where", "n > 100")
    assert run.code == 3
    assert run.text.splitlines()[-1].startswith("total: 0 of 8 row groups in 2 files may match: 0 B of ")
    assert "none.pm: no such file" in run.words


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("", "the predicate is empty"),
        ("n =", "not a SQL condition"),
        ("n + 1 = 2", "is not supported here"),
        ("n = 1; n = 2", "semicolon"),
        ("nope = 1", "there is no column nope"),
        ("n = 'x'", "cannot be compared with"),
        ("pickup > '2024-99-01'", "cannot be compared with"),
    ],
)
def test_a_bad_filter_is_refused(trips: Pair, where: str, words: str):
    run = underlay("pm", "prune", trips.sidecar, "--where", where)
    assert (run.code, run.output) == (2, b"")
    assert words in run.words
    assert "Traceback" not in run.words


def test_an_unknown_column_to_read_is_refused(trips: Pair):
    run = underlay("pm", "prune", trips.sidecar, "--where", "n = 1", "--columns", "n,nope")
    assert (run.code, run.output) == (2, b"")
    assert "there is no column nope" in run.words

"""`make demo`: what it prints is true, and what it proposes works."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.command import underlay
from underlay.cli import demo, demo_table


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for a demo on fewer rows."""
    monkeypatch.setattr(demo, "ROWS_PER_DAY", 3000)
    monkeypatch.setattr(demo, "ROWS_PER_GROUP", 250)
    monkeypatch.setattr(demo_table, "ROWS_PER_MONTH", 1000)
    monkeypatch.setattr(demo_table, "BLOCK_ROWS", 100)
    monkeypatch.setattr(demo_table, "MONTHS", 3)
    monkeypatch.chdir(tmp_path)
    return Path("demo-data")


def test_every_filter_skips_row_groups_and_finds_its_rows(small: Path, capsys: pytest.CaptureFixture[str]):
    assert demo.main([]) == 0
    text = capsys.readouterr().out
    assert text.count("the same as in a full scan") == 3
    assert text.count("skipped ") == 9
    paths = sorted(small.glob("*.parquet"))
    for question in demo.questions(paths):
        found = demo.find(paths, question)
        assert 0 < found.kept < found.row_groups
        assert 0 < found.read_bytes < found.total_bytes
        assert found.rows.num_rows > 0


def test_the_table_is_committed_once_pruned_and_read_at_an_older_version(small: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(demo_table, "MONTHS", 6)
    lines = list(demo_table.show_table(tmp_path / "lake"))
    text = "\n".join(lines)
    assert "0 rows added, still version 6, 6,000 rows" in text
    assert text.count("the same as by filtering all 6,000") == 2
    assert "5 of 6 files dropped by partition" in text
    assert "9 of 10 blocks dropped by bloom filter" in text
    assert "version 3, tagged first-quarter, still has 3,000 rows; version 6 has 6,000 rows" in text


def test_the_commands_it_ends_with_work(small: Path, capsys: pytest.CaptureFixture[str]):
    demo.main([])
    proposed = capsys.readouterr().out.partition("Try next:\n")[2].splitlines()
    assert len(proposed) == 9
    for line in proposed:
        _, *words = shlex.split(line)
        arguments = [
            path for word in words for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
        ]
        run = underlay(*arguments)
        assert run.code == 0
        assert run.output


def test_an_answer_that_lacks_rows_is_found_out(small: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    demo.main([])
    find = demo.find
    monkeypatch.setattr(demo, "find", lambda *given: find(*given)._replace(rows=find(*given).rows.slice(1)))
    assert demo.main([]) == 4
    assert "not the full scan's" in capsys.readouterr().err


def test_an_earlier_demo_is_replaced_with_the_same_data(small: Path):
    demo.main([])
    before = [pq.read_table(path) for path in sorted(small.glob("*.parquet"))]
    demo.main([str(small)])
    assert [pq.read_table(path) for path in sorted(small.glob("*.parquet"))] == before


def test_a_folder_that_no_demo_made_is_left_alone(small: Path, capsys: pytest.CaptureFixture[str]):
    small.mkdir()
    (small / "mine").touch()
    assert demo.main([]) == 2
    assert [path.name for path in small.iterdir()] == ["mine"]
    assert "no earlier demo made it" in capsys.readouterr().err


def test_a_wrong_argument_shows_the_usage(capsys: pytest.CaptureFixture[str]):
    assert demo.main(["--help"]) == 2
    assert capsys.readouterr().err.startswith("usage: ")

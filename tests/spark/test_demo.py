"""`make demo`: what it prints is true, and what it proposes works."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.cli.command import underlay
from underlay.cli.demo import __main__ as demo
from underlay.cli.demo import trips as demo_trips
from underlay.server.page import built_page
from underlay.spark import forget

pytestmark = pytest.mark.local_only


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spark: SparkSession) -> Iterator[Path]:
    """A folder for a demo on fewer trips."""
    monkeypatch.setattr(demo_trips, "TRIPS_PER_MONTH", 1000)
    monkeypatch.setattr(demo_trips, "LATE_TRIPS", 50)
    monkeypatch.setattr(demo, "BLOCK_ROWS", 100)
    monkeypatch.chdir(tmp_path)
    folder = Path("demo-data")
    yield folder
    if (folder / "lake").exists():
        forget(spark, ul.connect(folder / "lake"))


def test_trips_are_ingested_once_and_its_commands_work(small: Path, capsys: pytest.CaptureFixture[str]):
    assert demo.main([]) == 0
    text = capsys.readouterr().out
    assert "6 sources, 5,050 rows" in text
    assert "not ingested: yellow_tripdata_2024-04.csv.gz" in text
    assert "15 lines that are not trips" in text
    assert "6 of 7 sources are in the table already: nothing was read" in text
    assert "arrives whole: 1 source, 1,000 rows" in text
    assert "The table has 6,050 trips" in text
    assert text.count("were left out by metadata alone") == 2
    is_built = (Path(built_page.__file__).parent / "built" / "index.html").is_file()
    assert ("sent the page and" if is_built else "has no page (make page builds it)") in text
    assert " counted 6,050 trips; it was stopped again." in text
    proposed = text.partition("Try next:\n")[2].splitlines()[:-1]
    assert len(proposed) == 6
    for line in proposed:
        _, *words = shlex.split(line)
        run = underlay(*words)
        assert run.code == 0, run.words
        assert run.output or "nothing to do" in run.words


def test_trips_that_are_missing_are_found_out(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(demo, "deliver", lambda folder: one_trip_more(demo_trips.deliver(folder)))
    assert demo.main([]) == 4
    assert "does not hold the trips of its sources" in capsys.readouterr().err


def one_trip_more(given: demo_trips.Delivered) -> demo_trips.Delivered:
    return replace(given, trips=given.trips + 1)


def test_a_folder_that_no_demo_made_is_left_alone(small: Path, capsys: pytest.CaptureFixture[str]):
    small.mkdir()
    (small / "mine").touch()
    assert demo.main([]) == 2
    assert [path.name for path in small.iterdir()] == ["mine"]
    assert "is not from an earlier demo" in capsys.readouterr().err


def test_a_wrong_argument_shows_the_usage(capsys: pytest.CaptureFixture[str]):
    assert demo.main(["--help"]) == 2
    assert capsys.readouterr().err.startswith("usage: ")

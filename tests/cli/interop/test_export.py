"""`underlay export`, in words and as JSON."""

from __future__ import annotations

import pytest

from tests.cli.command import underlay
from underlay.api.lake import Lake


@pytest.fixture(autouse=True)
def tables(lake: Lake) -> None:
    trips = lake.create_table("a.trips", "id bigint, zone string")
    trips.append([{"id": 1, "zone": "JFK"}])
    lake.create_table("a.sizes", "id bigint, size uint8")


def test_a_table_is_exported_and_again_only_if_it_changed(lake: Lake):
    run = underlay("export", "a.trips")
    assert (run.code, run.words) == (0, "")
    assert run.text.startswith("a.trips: exported version 1 as iceberg 2 to file:///")
    assert "was exported as iceberg 2 before" in underlay("export", "a.trips").text
    (found,) = underlay("export", "a.trips", "--format", 3, "--json").objects
    assert (found["format"], found["version"], found["refused"], found["puts"]) == (3, 1, [], 4)
    assert underlay("export", "a.trips", "--as", "delta").text.startswith("a.trips: exported version 1 as delta to")


def test_what_cannot_be_exported_is_an_error_that_says_what_to_do(lake: Lake):
    run = underlay("export", "a.sizes")
    assert run.code == 2
    assert "column size: Iceberg has no unsigned integers" in run.words
    assert "--without size" in run.words
    run = underlay("export", "a.sizes", "--without", "size", "--dry-run")
    assert run.code == 0
    assert "would be exported" in run.text
    assert "without size: left out on request" in run.text
    assert next(iter(lake.exports())).exported_version is None


def test_all_tables_are_exported_and_the_others_named(lake: Lake):
    run = underlay("export", "--all", "--json")
    assert run.code == 2
    assert [(one["table"], one["puts"], len(one["refused"])) for one in run.objects] == [
        ("a.sizes", 0, 1),
        ("a.trips", 4, 0),
    ]


def test_the_status_says_what_is_exported_and_what_cannot_be(lake: Lake):
    underlay("export", "a.trips")
    lake.table("a.trips").append([{"id": 2, "zone": None}])
    run = underlay("export", "status")
    assert run.code == 0
    assert [line.split()[:4] for line in run.text.splitlines()] == [
        ["table", "kind", "version", "exported"],
        ["a.sizes", "iceberg", "0", "–"],
        ["a.trips", "iceberg", "2", "1"],
    ]
    assert "Iceberg has no unsigned integers" in run.text
    assert [one["is_current"] for one in underlay("export", "status", "--json").objects] == [False, False]


@pytest.mark.parametrize(
    "arguments", [[], ["a.trips", "--all"], ["a.trips", "--as", "hudi"], ["a.trips", "--format", "4"]]
)
def test_contradictions_are_refused(arguments: list[str]):
    assert underlay("export", *arguments).code == 2

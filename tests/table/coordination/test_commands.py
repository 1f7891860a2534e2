"""`underlay jobs` and `underlay leases`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import underlay
from tests.cli.conftest import lake as lake
from tests.cli.conftest import place as place
from tests.cli.conftest import taxi as taxi
from underlay.api.lake import Lake
from underlay.api.table import Table


def test_without_jobs_and_leases_a_sentence_says_so(taxi: Table):
    run = underlay("jobs")
    assert (run.code, run.text) == (0, "")
    assert run.words.endswith("/lake: no job is writing\n")
    assert underlay("jobs", "taxi.trips").words == "taxi.trips: no job is writing\n"
    assert underlay("leases", "taxi.trips").words == "taxi.trips: no reader keeps a version\n"
    assert underlay("jobs", "--json").output == underlay("leases", "--json").output == b""


def test_jobs_are_listed(taxi: Table, lake: Lake):
    lake.create_table("taxi.zones", "id bigint")
    with taxi.job("nightly", note="all of May") as job, lake.table("taxi.zones").job("load", exclusive=True):
        lines = underlay("jobs").text.splitlines()
        assert [line.split()[:4] for line in lines] == [
            ["table", "job", "state", "started"],
            ["taxi.trips", "nightly", "alive", lines[1].split()[3]],
            ["taxi.zones", "load", "(exclusive)", "alive"],
        ]
        assert lines[1].endswith("  all of May")
        [shown] = underlay("jobs", "taxi.trips", "--json").objects
        assert (shown["job"], shown["epoch"], shown["ttl_seconds"], shown["note"]) == ("nightly", 1, 60, "all of May")
        assert (shown["is_alive"], shown["is_fenced"], shown["is_exclusive"]) == (True, False, False)
        assert not job.is_lost


def test_leases_are_listed(taxi: Table):
    with taxi.lease("report") as held:
        [heading, line] = underlay("leases").text.splitlines()
        assert heading.split()[:4] == ["table", "version", "reader", "state"]
        assert line.split()[:4] == ["taxi.trips", "1", held.reader, "alive"]
        [shown] = underlay("leases", "--json").objects
        assert (shown["table"], shown["version"], shown["reader"]) == ("taxi.trips", 1, held.reader)
        assert (shown["ttl_seconds"], shown["is_alive"], shown["revision"]) == (600, True, taxi.revision)


def test_what_cannot_be_read_is_listed_as_such(taxi: Table, place: Path):
    with taxi.job("nightly"), taxi.lease("report"):
        for part in ("intents", "leases"):
            [file] = place.rglob(f"_index/{part}/*")
            file.write_bytes(b"garbage")
        assert underlay("jobs").text.splitlines()[1].split()[:4] == ["taxi.trips", "nightly", "unreadable", "?"]
        assert underlay("leases").text.splitlines()[1].split()[1] == "?"
        [job], [lease] = underlay("jobs", "--json").objects, underlay("leases", "--json").objects
        assert (job["owner"], job["is_alive"], lease["version"]) == (None, True, None)
        assert "_index/intents/nightly" in job["problem"]
        assert "_index/leases/report-" in lease["problem"]


def test_a_table_that_is_not_there_is_said_with_near_names(taxi: Table):
    for command in ("jobs", "leases"):
        run = underlay(command, "taxi.trip")
        assert run.code == 3
        assert "Did you mean taxi.trips?" in run.words

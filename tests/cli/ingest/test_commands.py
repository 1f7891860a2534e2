"""`underlay ingest`: what it says, what it leaves, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from datetime import date
from pathlib import Path

import pytest

from tests.cli.command import SCRIPT, underlay
from underlay.api.lake import Lake
from underlay.cli.common.stopping import stoppable
from underlay.table.versions.environment import wait_for_background

SCHEMA = "id bigint not null, fare double"


@pytest.fixture
def inbox(place: Path) -> Path:
    """Two sources with five rows, of which one does not fit."""
    folder = place / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("id,fare\n1,1.5\n2,\n")
    (folder / "2.csv").write_text("id,fare\n3,3.5\n4,x\n5,5\n")
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    wait_for_background()
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_sources_are_ingested_once_and_the_summary_says_what_came_of_them(lake: Lake, inbox: Path):
    run = underlay("ingest", "taxi.trips", "in/", "--schema", SCHEMA)
    assert (run.code, run.output) == (0, b"")
    first, *rest = run.words.splitlines()
    assert first.startswith("taxi.trips: a new table, version 2, 2 sources ingested, 4 rows (39 B in ")
    assert first.endswith(", in this process)")
    assert rest[0] == "  rejected: 1 row of 1 source"
    assert rest[1].endswith(f"(first in {(inbox / '2.csv').as_uri()}, line 3)")
    shown = rest[2].removeprefix('    see them: underlay sql "').removesuffix('"')
    assert [row["line"] for row in underlay("sql", shown, "--json").objects] == [3]
    again = underlay("ingest", "taxi.trips", "in/")
    assert (again.code, again.words) == (0, "taxi.trips: 2 sources, all known; nothing to do\n")
    assert lake.table("taxi.trips").count() == 4


def test_the_summary_is_one_object_for_programs(lake: Lake, inbox: Path):
    [shown] = underlay("ingest", "taxi.trips", "in/", "--schema", SCHEMA, "--json").objects
    assert (shown["ingested"], shown["rows"], shown["rejected"], shown["versions"]) == (2, 4, 1, [2])
    assert (shown["is_created"], shown["workers"], shown["failures"]) == (True, "local", [])
    [again] = underlay("ingest", "taxi.trips", "in/", "--json").objects
    assert (again["ingested"], again["known"], again["run"], again["workers"]) == (0, 2, None, None)


def test_a_source_that_cannot_be_read_fails_the_command_and_not_the_others(lake: Lake, inbox: Path):
    (inbox / "9.parquet").write_bytes(b"nonsense")
    run = underlay("ingest", "taxi.trips", "in/", "--schema", SCHEMA)
    assert run.code == 4
    assert f"  failed: {(inbox / '9.parquet').as_uri()}: " in run.words
    assert lake.table("taxi.trips").count() == 4
    again = underlay("ingest", "taxi.trips", "in/")
    assert again.code == 4
    assert "nothing to do: 2 known already, 1 failed before (--retry-failed retries them)" in again.words
    (inbox / "9.parquet").unlink()
    assert underlay("ingest", "taxi.trips", "in/").code == 0


def test_too_many_rejected_rows_fail_the_command_and_the_run_keeps_the_reason(lake: Lake, inbox: Path):
    run = underlay("ingest", "taxi.trips", "in/", "--schema", SCHEMA, "--max-rejected", "10%")
    assert run.code == 2
    assert "1 of 5 rows" in run.words
    assert lake.table("taxi.trips").count() == 0
    [shown] = underlay("jobs", "--json").objects
    assert (shown["kind"], shown["state"], shown["rows"]) == ("run", "failed", 0)
    assert run.words == f"taxi.trips: failed; nothing was committed\nerror: {shown['reason']}\n"


def test_jobs_and_history_show_runs(lake: Lake, inbox: Path):
    underlay("ingest", "taxi.trips", "in/", "--schema", SCHEMA)
    underlay("ingest", "taxi.trips", "in/")
    run = underlay("jobs", "taxi.trips")
    heading, newest, oldest = run.text.splitlines()
    assert heading.split()[:3] == ["table", "run", "state"]
    assert " nothing to do " in newest
    assert [cell for cell in oldest.split("  ") if cell][2].strip() == "done"
    [ingested] = [one for one in underlay("history", "taxi.trips", "--json").objects if one["operation"] == "ingest"]
    assert ingested["run"] == oldest.split()[1]
    line = underlay("history", "taxi.trips").text.splitlines()[1]
    assert "2 sources, 39 B of sources, 1 row rejected" in line
    assert line.endswith(ingested["run"])
    assert len(underlay("jobs", "--limit", 1, "--json").objects) == 1
    assert underlay("jobs", "--limit", 0).text == ""


@pytest.mark.parametrize(
    "options",
    [
        ["--in-process", "--master", "local[*]"],
        ["--in-process", "--conf", "a=b"],
        ["--watch", "--dry-run"],
        ["--interval", "5s"],
        ["--watch", "--interval", "soon"],
        ["--schema", "id bigint", "--schema-file", "x.sql"],
        ["--format", "json", "--delimiter", ","],
        ["--format", "tsv", "--delimiter", ","],
        ["--delimiter", "ab"],
        ["--max-rejected", "many"],
        ["--changed", "perhaps"],
        ["--conf", "ab"],
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_happens(lake: Lake, place: Path, options: list[str]):
    before = files_below(place)
    assert underlay("ingest", "taxi.trips", "nowhere/*.csv", *options).code == 2
    assert files_below(place) == before


def test_csv_is_read_as_the_options_say(lake: Lake, place: Path):
    (place / "a.txt").write_text("1;'x;y'\n2;NA\n")
    options = ["--format", "csv", "--no-header", "--delimiter", ";", "--quote", "'", "--null", "NA"]
    run = underlay("ingest", "a.b", "a.txt", "--schema", "n bigint, s string", *options)
    assert run.code == 0, run.words
    assert lake.table("a.b").to_arrow().to_pylist() == [{"n": 1, "s": "x;y"}, {"n": 2, "s": None}]


def test_a_dry_run_shows_what_would_be_done_and_changes_nothing(
    lake: Lake, inbox: Path, place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("UNDERLAY_REGISTRY")  # so that the lake has one
    before = files_below(place)
    run = underlay("ingest", "taxi.trips", "in/1.csv", "in/2.csv", "--dry-run", "--schema", SCHEMA)
    assert (run.code, files_below(place)) == (0, before)
    assert [line.split()[:2] for line in run.text.splitlines()[1:]] == [["ingest", "new"]] * 2
    assert "would ingest 2 sources, 39 B; nothing was changed" in run.words
    assert "  fare float64" in run.words
    underlay("ingest", "taxi.trips", "in/1.csv", "--schema", SCHEMA)
    before = _files_outside_registry(place)
    [shown] = underlay("ingest", "taxi.trips", "in/", "--dry-run", "--json").objects
    assert _files_outside_registry(place) == before
    assert [(one["state"], one["ingest"]) for one in shown["sources"]] == [("new", True), ("known", False)]
    assert (shown["counts"]["new"], shown["counts"]["known"], shown["ingest"]) == (1, 1, 1)


def _files_outside_registry(place: Path) -> dict[str, bytes]:
    """SQLite's log comes and goes with the lakes that commands in this process opened, and these with the collector of
    garbage."""
    return {path: data for path, data in files_below(place).items() if "/_registry" not in path}


def test_without_a_lake_nothing_is_made(place: Path):
    run = underlay("ingest", "taxi.trips", "in/", "--lake", place / "nowhere")
    assert run.code == 3
    assert 'Make one with "underlay init"' in run.words
    assert list(place.iterdir()) == []


def test_a_watch_ends_with_a_summary_when_it_is_told_to(lake: Lake, inbox: Path):
    command = [SCRIPT, "ingest", "taxi.trips", "in/", "--schema", SCHEMA, "--watch", "--interval", "10ms", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        rest, words = process.communicate(timeout=240)
    assert process.returncode == 0, words
    total = json.loads(rest.splitlines()[-1])
    assert (total["ingested"], total["rows"]) == (2, 4)
    assert (first["event"], total["event"]) == ("look", "end")
    [run] = lake.runs()
    assert (run.state, run.sources, run.run) == ("stopped", 2, total["run"])


def test_the_first_signal_unwinds_and_the_second_would_end_the_process(capfd: pytest.CaptureFixture[str]):
    before = signal.getsignal(signal.SIGINT)
    with stoppable("stopping"):
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr().err == "\nstopping\n"


def test_csv_from_elsewhere_is_read_as_the_options_say(lake: Lake, place: Path):
    text = "Bericht\n# Stand\n1;1.234,50;31.12.2024;Köln\n2;0,25;01.01.2025;Ä\n"
    (place / "trips.csv").write_bytes(text.encode("latin-1"))
    options = ("--columns", "id,fare,day,zone", "--encoding", "latin-1", "--decimal", ",", "--thousands", ".")
    more = ("--date-format", "%d.%m.%Y", "--skip-lines", "1", "--comment-mark", "#", "--delimiter", ";")
    assert underlay("ingest", "a.ingested", "trips.csv", *options, *more).code == 0
    assert underlay("create", "a.appended", "--from", "trips.csv", *options, *more).code == 0
    assert underlay("append", "a.appended", "trips.csv", *options, *more).code == 0
    for name in ("a.ingested", "a.appended"):
        rows = lake.table(name).to_arrow().sort_by("id").to_pylist()
        assert rows == [
            {"id": 1, "fare": 1234.5, "day": date(2024, 12, 31), "zone": "Köln"},
            {"id": 2, "fare": 0.25, "day": date(2025, 1, 1), "zone": "Ä"},
        ]
    wrong = underlay("append", "a.appended", "trips.csv", *options, *more[:2], "--delimiter", ";")
    assert (wrong.code != 0, "line 1" in wrong.words) == (True, True)


def test_a_failed_source_is_retried_with_other_options_and_a_known_one_again_when_asked_for(lake: Lake, place: Path):
    (place / "a.csv").write_text("1;2\n")
    first = underlay("ingest", "a.b", "a.csv", "--schema", "id bigint, n bigint", "--columns", "id", "--source-column")
    assert (first.code, "its only row was rejected" in first.words) == (4, True)
    assert underlay("ingest", "a.b", "a.csv", "--columns", "id,n").code == 0
    again = underlay("ingest", "a.b", "--again", "a.csv", "--columns", "n,id")
    assert (again.code, lake.table("a.b").scan(["id", "n"]).to_arrow().to_pylist()) == (0, [{"id": 2, "n": 1}])
    assert underlay("ingest", "a.b", "--again", "a.csv", "--watch").code == 2
    assert underlay("ingest", "a.b").code == 2


def test_stdin_is_no_source_and_the_error_says_what_to_do(lake: Lake):
    run = underlay("ingest", "a.b", "-", stdin=b"id\n1\n")
    assert (run.code, "underlay append" in run.words) == (2, True)


def test_columns_come_from_stdin_too(lake: Lake):
    run = underlay("create", "a.b", "--from", "-", "--format", "csv", "--delimiter", "|", stdin=b"id|x;y\n1|a\n")
    assert (run.code, lake.table("a.b").schema.names) == (0, ["id", "x;y"])
    assert underlay("append", "a.b", "-", "--delimiter", "|", stdin=b"id|x;y\n1|a\n").code == 0
    assert underlay("create", "a.c", "--schema", "id bigint", "--delimiter", "|").code == 2


def test_a_changed_source_fails_the_command_and_the_others_are_ingested(lake: Lake, inbox: Path):
    underlay("ingest", "taxi.trips", "in/", "--schema", SCHEMA)
    first = sorted(inbox.iterdir())[0]
    first.write_text(first.read_text() + first.read_text().splitlines()[1] + "\n")
    (inbox / "new.csv").write_text(sorted(inbox.iterdir())[1].read_text())
    before = lake.table("taxi.trips").count()
    run = underlay("ingest", "taxi.trips", "in/")
    assert run.code == 2
    assert "1 source ingested" in run.words
    assert "--changed replace" in run.words
    assert lake.table("taxi.trips").count() > before


def test_reasons_that_are_not_shown_are_counted(lake: Lake, place: Path):
    (place / "a.csv").write_text("id\n1\n" + "".join(f"x{number}\n" for number in range(7)))
    run = underlay("ingest", "a.b", "a.csv", "--schema", "id bigint")
    assert "rejected: 7 rows of 1 source" in run.words
    assert "and 2 more reasons" in run.words


def test_a_record_may_be_longer_when_the_options_say_so(lake: Lake, place: Path):
    (place / "a.csv").write_text(f"note\nshort\n{'x' * 3000}\n")
    run = underlay("ingest", "a.b", "a.csv", "--schema", "note string", "--max-record", "1KiB")
    assert "the record is longer than 1024 bytes" in run.words
    assert underlay("append", "a.b", "a.csv", "--max-record", "1000000").code == 0
    assert underlay("append", "a.b", "a.csv", "--max-record", "much").code == 2

"""init, tables, rename, drop, revisions, and which lake a command means."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import underlay
from underlay.api.lake import Lake, connect
from underlay.api.table import Table
from underlay.cli.common.lake_choice import LakeChoice, read_config
from underlay.cli.tables.lake_init import write_config
from underlay.index.keys import RevisionKeys


def test_init_makes_a_lake_and_commands_in_that_directory_find_it(place: Path, monkeypatch: pytest.MonkeyPatch):
    run = underlay("init", "data/lake")
    assert (run.code, run.output) == (0, b"")
    assert f"{place}/data/lake: created a new lake" in run.words
    assert f"{place}/underlay.toml: written" in run.words
    assert (place / "underlay.toml").read_text() == 'lake = "data/lake"\n'
    deeper = place / "a" / "b"
    deeper.mkdir(parents=True)
    monkeypatch.chdir(deeper)
    run = underlay("tables")
    assert (run.code, run.output) == (0, b"")
    assert run.words == f'{place}/data/lake: no tables yet. Create one with "underlay create".\n'


def test_init_leaves_a_lake_and_a_file_that_are_there(place: Path):
    underlay("init", "one")
    again = underlay("init", "one")
    assert again.code == 0
    assert "the lake exists already" in again.words
    assert "names this lake already" in again.words
    other = underlay("init", "two")
    assert f"it names another lake, {place}/one. Use --lake" in other.words
    assert (place / "underlay.toml").read_text() == 'lake = "one"\n'
    assert connect(place / "two").exists()


def test_init_without_a_file(place: Path):
    run = underlay("init", "lake", "--no-config", "--json")
    assert run.objects == [{"lake": (place / "lake").as_uri(), "is_new": True, "config": None}]
    assert not (place / "underlay.toml").exists()


def test_init_makes_the_lake_that_the_file_names(place: Path):
    (place / "underlay.toml").write_text('lake = "mine"\n')
    assert underlay("init").code == 0
    assert connect(place / "mine").exists()


def test_init_of_a_place_that_cannot_be_a_lake_writes_no_file(place: Path):
    assert underlay("init", "lake", "--option", "region=eu").code == 2
    assert underlay("init", "ftp://host/lake").code == 2
    assert list(place.iterdir()) == []


def test_init_writes_options_but_no_secrets(place: Path):
    options = {"region": "eu", "secret_access_key": "hidden", "access_key_id": "id"}
    written = write_config(LakeChoice(url="s3://bucket/lake", options=options))
    assert written is not None
    assert "hidden" not in written.read_text()
    assert read_config(written).options == {"region": "eu"}
    assert read_config(written).url == "s3://bucket/lake"


def test_without_any_name_of_a_lake_the_ways_to_name_one_are_said(place: Path):
    run = underlay("tables")
    assert run.code == 3
    assert "no lake was given. Give --lake, set UNDERLAY_LAKE, or run" in run.words


@pytest.mark.parametrize(
    "arguments",
    [["tables"], ["create", "a.b", "--schema", "n int"], ["scan", "a.b"], ["sql", "select 1"], ["drop", "a.b"]],
)
def test_a_place_without_a_lake_is_refused_and_stays_empty(place: Path, arguments: list[str]):
    run = underlay(*arguments, "--lake", "nowhere")
    assert (run.code, run.output) == (3, b"")
    assert "there is no lake here" in run.words
    assert not (place / "nowhere").exists()


def test_the_option_wins_over_the_environment_and_that_over_the_file(lake: Lake, place: Path, monkeypatch):
    for name in ("option", "environment"):
        connect(place / name).create_table(f"from.{name}", "n int")
    lake.create_table("from.file", "n int")
    assert underlay("tables", "--json").objects[0]["name"] == "from.file"
    monkeypatch.setenv("UNDERLAY_LAKE", str(place / "environment"))
    assert underlay("tables", "--json").objects[0]["name"] == "from.environment"
    assert underlay("tables", "--lake", "option", "--json").objects[0]["name"] == "from.option"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lake = ", "not valid TOML"),
        ("", "the file does not name a lake"),
        ("lake = 5", "the file does not name a lake"),
        ('lake = "x"\nlak = "y"', "unknown setting (expected lake or registry or hot or options, found lak)"),
        ('lake = "x"\noptions = 5', "an option must be a single value"),
        ('lake = "x"\n[options]\nregion = ["a"]', "an option must be a single value"),
        ('lake = "lake"\n[options]\nregion = "eu"', "this store has no options: region"),
    ],
)
def test_a_file_that_says_something_else_is_refused(place: Path, text: str, problem: str):
    (place / "underlay.toml").write_text(text)
    run = underlay("tables")
    assert run.code == 2
    assert problem in run.words


@pytest.mark.parametrize("option", ["region", "=x", " =x"])
def test_an_option_without_a_key_is_refused_without_repeating_it(place: Path, option: str):
    run = underlay("tables", "--lake", "x", "--option", option)
    assert run.code == 2
    assert run.words == "error: --option takes KEY=VALUE; number 1 has no key or no =\n"


def test_tables_lists_names_and_with_long_what_they_hold(taxi: Table, lake: Lake):
    lake.create_table("a.empty", "n int")
    assert underlay("tables").text == "table\na.empty\ntaxi.trips\n"
    long = underlay("tables", "-l").text.splitlines()
    assert long[0].split() == ["table", "version", "committed", "rows", "files", "size"]
    assert long[2].split()[:2] == ["taxi.trips", "1"]
    assert [(o["name"], o.get("rows")) for o in underlay("tables", "--json").objects] == [
        ("a.empty", None),
        ("taxi.trips", None),
    ]
    assert [(o["name"], o["rows"], o["files"]) for o in underlay("tables", "-l", "--json").objects] == [
        ("a.empty", 0, 0),
        ("taxi.trips", 3, 2),
    ]


def test_tables_lists_a_damaged_table_as_damaged_beside_the_others(taxi: Table, lake: Lake):
    broken = lake.create_table("a.broken", "n int")
    found = next(one for one in lake.tables() if one.name == "a.broken")
    root = Path(lake.url.removeprefix("file:")) / RevisionKeys.of(found.folder, found.revision).root(broken.version)
    root.write_bytes(b"damaged")
    run = underlay("tables", "-l")
    assert run.code == 4
    assert [line.split()[:2] for line in run.text.splitlines()[1:]] == [["a.broken", "damaged"], ["taxi.trips", "1"]]
    listed = underlay("tables", "-l", "--json")
    assert listed.code == 4
    assert [(one["name"], "damage" in one) for one in listed.objects] == [("a.broken", True), ("taxi.trips", False)]


def test_a_renamed_table_has_its_rows(taxi: Table, lake: Lake):
    run = underlay("rename", "taxi.trips", "taxi.yellow")
    assert (run.code, run.output, run.words) == (0, b"", "taxi.trips is now called taxi.yellow\n")
    assert lake.table("taxi.yellow").count() == 3
    assert underlay("rename", "taxi.yellow", "taxi.trips", "--json").objects == [
        {"table": "taxi.trips", "was": "taxi.yellow"}
    ]


def test_a_wrong_name_is_answered_with_near_ones(taxi: Table):
    for verb in (
        ["rename", "taxi.tripz", "a.b"],
        ["drop", "taxi.tripz"],
        ["revisions", "taxi.tripz"],
        ["show", "trips"],
    ):
        run = underlay(*verb)
        assert run.code == 3
        assert run.words.endswith("Did you mean taxi.trips?\n")
    assert underlay("show", "other.thing").words.endswith('Run "underlay tables" to see what there is.\n')


def test_drop_says_what_would_go_and_does_it_only_when_told(taxi: Table, lake: Lake):
    run = underlay("drop", "taxi.trips")
    assert (run.code, run.output) == (2, b"")
    assert "would drop versions 0 to 1" in run.words
    assert "3 rows in 2 files" in run.words
    assert run.words.endswith("Nothing was changed; add --yes to do it.\n")
    assert underlay("drop", "taxi.trips", "--json").objects[0]["is_done"] is False
    assert lake.table("taxi.trips").count() == 3
    done = underlay("drop", "taxi.trips", "--yes", "--json")
    assert (done.code, done.objects[0]["is_done"], done.objects[0]["rows"]) == (0, True, 3)
    assert connect(lake.url).tables() == []


def test_revisions_shows_the_active_one(taxi: Table):
    [one] = underlay("revisions", "taxi.trips", "--json").objects
    assert (one["id"], one["is_active"]) == (taxi.revision, True)
    assert taxi.revision in underlay("revisions", "taxi.trips").text

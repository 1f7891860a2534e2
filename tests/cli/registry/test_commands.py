"""registry status, follow, restore, migrate; which registry a command uses; the registry in verify."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.command import patient, underlay
from tests.registry.servers import PASSWORD, PostgresServer
from tests.registry.unprivileged import unprivileged
from underlay.api.lake import connect
from underlay.cli.common.lake_choice import choose_lake
from underlay.index.keys import RevisionKeys

ROWS = "id,zone\n1,a\n2,b\n"


@pytest.fixture(autouse=True)
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory with a data file, and nothing in the environment that names a registry."""
    monkeypatch.delenv("UNDERLAY_REGISTRY", raising=False)
    (place / "rows.csv").write_text(ROWS)
    return place


@pytest.fixture
def file(here: Path) -> Path:
    """The SQLite registry of a lake with a table of three versions, all made by commands."""
    make_lake("lake")
    return here / "lake" / "_registry" / "registry.sqlite"


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.start()
    postgres.drop_database(url)


def make_lake(name: str, *options: str) -> None:
    for arguments in (
        ["init", name, *options],
        ["create", "a.t", "--from", "rows.csv", "--lake", name],
        ["append", "a.t", "rows.csv", "--lake", name],
        ["append", "a.t", "rows.csv", "--lake", name],
    ):
        run = underlay(*arguments)
        assert run.code == 0, run.words


def append_without_registry() -> None:
    connect("lake", registry="none").table("a.t").append(pa.table({"id": [3], "zone": ["c"]}))


def delete(file: Path) -> None:
    for found in file.parent.glob(f"{file.name}*"):
        found.unlink(missing_ok=True)  # its log goes when the last connection of a lake that was let go is closed


def copy(source: Path, file: Path) -> None:
    """Another lake's registry in place of one."""
    delete(file)
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(file)) as written:
        read.backup(written)


def status() -> dict:
    run = underlay("registry", "status", "--json")
    (found,) = run.objects
    assert run.code == (0 if found["is_used"] else 1)
    return found


def test_processes_that_end_leave_nothing_behind(here: Path):
    for arguments in (["init", "lake"], ["create", "a.t", "--from", "rows.csv"], ["append", "a.t", "rows.csv"]):
        assert patient(*arguments).returncode == 0
    found = status()
    assert (found["state"], found["behind"], found["tables"][0]["applied"]) == ("current", 0, 1)


def test_status_says_where_the_registry_is_and_how_far(file: Path):
    run = underlay("registry", "status")
    assert run.code == 0
    assert f"registry  sqlite:///{file}\n" in run.text
    assert "state     used, and up to date with the store\n" in run.text
    assert "a.t                  2             2       0\n" in run.text


def test_a_registry_that_is_merely_behind_is_no_fault(file: Path):
    append_without_registry()
    run = underlay("registry", "status")
    assert run.code == 0
    assert "used, and 1 commit behind the store" in run.text
    assert '"underlay registry follow" does it now' in run.text


def test_follow_applies_what_is_missing_and_says_how_much(file: Path):
    append_without_registry()
    assert underlay("registry", "follow").words == "1 version of 1 revision applied\n"
    assert underlay("registry", "follow").words == "already up to date\n"
    assert underlay("registry", "follow", "--json").objects[0]["versions"] == 0
    assert status()["state"] == "current"


def test_a_deleted_registry_is_shown_and_restored(file: Path):
    delete(file)
    assert status()["state"] == "empty"
    dry = underlay("registry", "restore", "--dry-run")
    assert dry.code == 1
    assert "there is no registry here yet" in dry.words
    done = underlay("registry", "restore")
    assert (done.code, done.output) == (0, b"")
    assert "restored: 1 table, 1 revision, 3 versions" in done.words
    assert underlay("registry", "restore", "--dry-run").code == 0
    assert status()["state"] == "current"


def test_restore_has_json(file: Path):
    (found,) = underlay("registry", "restore", "--json").objects
    assert (found["tables"], found["revisions"], found["versions"], found["files"]) == (1, 1, 3, 2)


def test_a_dry_run_shows_differences_by_table_and_changes_nothing(file: Path):
    for _ in range(5):
        append_without_registry()
    dry = underlay("registry", "restore", "--dry-run")
    assert dry.code == 1
    assert "versions: 5 rows missing\n" in dry.text
    assert "  … and 2 more\n" in dry.text
    assert "head is 2, should be 7" in dry.text
    assert "11 rows differ from the store; nothing was changed" in dry.words
    found = underlay("registry", "restore", "--dry-run", "--json")
    assert (found.code, len(found.objects)) == (1, 11)
    assert {one["kind"] for one in found.objects} == {"missing", "different"}
    assert status()["behind"] == 5


def test_a_registry_of_another_lake_is_refused_until_it_is_restored(file: Path, here: Path):
    make_lake("other")
    copy(here / "other" / "_registry" / "registry.sqlite", file)
    assert status()["state"] == "refused"
    run = underlay("registry", "status")
    assert "refused: " in run.text
    assert "underlay registry restore" in run.text
    assert underlay("registry", "follow").code == 4
    assert underlay("registry", "restore", "--dry-run").code == 1
    appended = underlay("append", "a.t", "rows.csv")
    assert appended.code == 0
    assert "note: the registry is not used: " in appended.words
    assert underlay("registry", "restore").code == 0
    assert status()["state"] == "current"


def test_a_damaged_file_is_named_and_replaced_by_restore(file: Path):
    delete(file)
    file.write_bytes(b"no database" * 1000)
    found = status()
    assert (found["state"], found["is_used"]) == ("damaged", False)
    assert underlay("registry", "restore", "--dry-run").code == 1
    assert underlay("registry", "restore").code == 0
    assert status()["state"] == "current"


def test_migrate_says_from_where_to_where(here: Path):
    underlay("init", "lake", "--registry", "none")
    url = "sqlite:///another.sqlite"
    assert underlay("registry", "migrate", "--registry", url, "--json").objects[0]["from"] is None
    assert underlay("registry", "migrate", "--registry", url).words.endswith("another.sqlite: already at 0004\n")
    with sqlite3.connect(here / "another.sqlite") as connection:
        connection.execute("UPDATE registry_schema SET version_num = '9999'")
    run = underlay("registry", "status", "--registry", url)
    assert run.code == 1
    assert "it was made by a newer release" in run.text


@pytest.mark.parametrize("verb", ["status", "follow", "restore", "migrate"])
def test_a_lake_without_a_registry_is_said(here: Path, verb: str):
    underlay("init", "lake", "--registry", "none")
    run = underlay("registry", verb)
    assert run.code == 3
    assert "this lake has no registry. Name one by --registry" in run.words


@pytest.mark.parametrize("verb", ["status", "follow", "restore", "migrate"])
def test_no_registry_is_made_where_there_is_no_lake(here: Path, verb: str):
    run = underlay("registry", verb, "--lake", "nowhere")
    assert run.code == 3
    assert "there is no lake here" in run.words
    assert not (here / "nowhere").exists()


def test_the_file_names_the_registry_from_its_own_folder(here: Path, monkeypatch: pytest.MonkeyPatch):
    assert underlay("init", "lake", "--registry", "sqlite:///r.sqlite").code == 0
    assert (here / "underlay.toml").read_text() == 'lake = "lake"\nregistry = "sqlite:///r.sqlite"\n'
    (here / "deeper").mkdir()
    monkeypatch.chdir(here / "deeper")
    assert status()["registry"] == f"sqlite:///{here}/r.sqlite"


def test_commands_work_with_the_registry_of_the_file(here: Path):
    (here / "underlay.toml").write_text('lake = "lake"\nregistry = "sqlite:///r.sqlite"\n')
    for arguments in (["init"], ["create", "a.t", "--from", "rows.csv"], ["append", "a.t", "rows.csv"]):
        assert underlay(*arguments).code == 0
    assert underlay("tables", "--long", "--json").objects[0]["rows"] == 2
    assert (underlay("jobs").code, underlay("leases").code) == (0, 0)
    assert status()["registry"] == f"sqlite:///{here}/r.sqlite"
    assert not (here / "lake" / "_registry").exists()


def test_the_environment_wins_over_the_file_and_a_named_lake_leaves_the_file_out(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    (here / "underlay.toml").write_text('lake = "lake"\nregistry = "sqlite:///r.sqlite"\n')
    assert choose_lake(None, None).registry == f"sqlite:///{here}/r.sqlite"
    assert choose_lake("lake", None).registry is None
    monkeypatch.setenv("UNDERLAY_REGISTRY", "none")
    assert choose_lake(None, None).registry is None


@pytest.mark.parametrize("text", ["5", '""', '"not a url"'])
def test_a_registry_that_is_none_is_refused(here: Path, text: str):
    (here / "underlay.toml").write_text(f'lake = "lake"\nregistry = {text}\n')
    run = underlay("tables")
    assert run.code == 2
    assert "sqlite:///path" in run.words


def test_init_with_a_registry_that_cannot_be_makes_nothing(here: Path):
    assert underlay("init", "lake", "--registry", "mysql://host/x").code == 2
    assert not (here / "lake").exists()


def test_init_leaves_a_password_out_of_the_file(here: Path, database: str):
    run = underlay("init", "lake", "--registry", database)
    assert run.code == 0
    assert (here / "underlay.toml").read_text() == 'lake = "lake"\n'
    assert "since it holds a password. Set UNDERLAY_REGISTRY" in run.words
    assert PASSWORD not in run.words


def test_postgresql_that_is_down_is_said_without_its_password(
    here: Path, postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("UNDERLAY_REGISTRY", database)
    make_lake("lake")
    assert status()["state"] == "current"
    postgres.kill()
    run = underlay("registry", "status")
    assert run.code == 1
    assert "not used: " in run.text
    assert "Check that the server is running" in run.text
    words = [run.text, underlay("registry", "status", "--json").text]
    for verb in ("follow", "restore", "migrate"):
        failed = underlay("registry", verb)
        assert failed.code == 7
        words.append(failed.words)
    appended = patient("append", "a.t", "rows.csv")
    assert appended.returncode == 0
    assert appended.stderr.count(b"note: the registry is not used for now") == 1
    verified = underlay("verify")
    assert verified.code == 1
    assert "Check that the server is running" in verified.text
    repaired = underlay("verify", "--repair")
    assert repaired.code == 1
    assert underlay("verify", "--no-registry").code == 0
    assert not any(PASSWORD in text for text in [*words, appended.stderr.decode(), verified.text, repaired.text])
    postgres.start()
    assert underlay("verify").code == 0
    assert status()["state"] == "current"


def test_verify_brings_the_registry_up_to_date(file: Path):
    append_without_registry()
    assert underlay("verify").code == 0
    assert status()["state"] == "current"
    delete(file)
    assert underlay("verify").code == 0


def test_verify_sums_up_what_is_wrong_and_repairs_it(file: Path):
    for _ in range(20):
        append_without_registry()
    underlay("registry", "follow")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE file_metadata SET row_count = row_count + 1")
    found = underlay("verify")
    assert found.code == 1
    assert "file_metadata: 22 rows different, such as revision " in found.text
    assert len(found.text.splitlines()) == 5
    assert underlay("verify", "--json").objects[0]["registry"][0]["kind"] == "registry"
    repaired = underlay("verify", "--repair")
    assert repaired.code == 0
    assert "registry: restored from the store" in repaired.text
    assert underlay("registry", "restore", "--dry-run").code == 0


def test_verify_with_a_registry_of_another_lake_is_a_finding_that_is_repaired(file: Path, here: Path):
    make_lake("other")
    copy(here / "other" / "_registry" / "registry.sqlite", file)
    found = underlay("verify")
    assert found.code == 1
    assert "underlay registry restore" in found.text
    assert underlay("verify", "--repair").code == 0
    assert status()["state"] == "current"


def test_a_damaged_store_is_reported_beside_a_registry_that_cannot_be_compared(file: Path, here: Path):
    (table,) = connect("lake", registry="none").tables()
    (here / "lake" / RevisionKeys.of(table.folder, table.revision).root(1)).write_bytes(b"damaged")
    run = underlay("verify", "--repair")
    assert run.code == 1
    assert "note: the registry was not compared with the store" in run.words


def test_verify_of_a_lake_that_may_only_be_read_is_no_finding(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("UNDERLAY_REGISTRY", raising=False)
    with tempfile.TemporaryDirectory() as place:  # others may not enter pytest's folders
        monkeypatch.chdir(place)
        Path("rows.csv").write_text(ROWS)
        make_lake("lake")
        delete(Path("lake/_registry/registry.sqlite"))
        with unprivileged(Path(place), Path("lake/_registry"), Path("lake")):
            run = underlay("verify")
        assert run.code == 0, run.words
        assert "note: the registry was not compared with the store" in run.words
        monkeypatch.undo()


@pytest.mark.parametrize("table", ["versions", "footer_cache", "lake"])
def test_a_registry_that_lacks_a_table_is_not_used_says_status(file: Path, table: str):
    with sqlite3.connect(file) as connection:
        connection.execute(f"DROP TABLE {table}")
    connection.close()
    found = status()
    assert (found["state"], found["is_used"]) == ("damaged", False)
    assert found["problem"] == f"not used: the table {table} is missing"
    assert underlay("registry", "restore").code == 0
    assert status()["state"] == "current"


def test_status_makes_no_registry(file: Path):
    delete(file)
    assert status()["state"] == "empty"
    assert not file.exists()

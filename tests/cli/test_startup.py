"""What commands load before they do anything: by counts of modules, never by time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import underlay
from underlay.api.table import Table
from underlay.cli import app, main
from underlay.cli.quick import QUICK, parse

HEAVY = ["pandas", "pyspark", "sqlalchemy", "duckdb", "pyarrow", "numpy", "sqlglot", "typer", "pydantic", "rich"]
LAYERS = ["ingest", "spark", "registry", "change", "scan", "plan", "maintain", "local"]


def loaded(code: str) -> set[str]:
    """The modules that a process has loaded after running this."""
    script = f"import json, sys\n{code}\nprint(json.dumps(list(sys.modules)), file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=120)
    return set(json.loads(run.stderr.splitlines()[-1]))


def after_command(*arguments: str) -> set[str]:
    return loaded(
        f"sys.argv = {['underlay', *arguments]!r}\nfrom underlay.cli import main\n"
        "try:\n    main.run()\nexcept SystemExit as end:\n    assert not end.code, end.code"
    )


def test_importing_underlay_loads_no_library():
    modules = loaded("import underlay")
    assert not modules & {*HEAVY, "msgspec", "obstore", "pyarrow.dataset", "typing"}


def test_a_listing_loads_nothing_that_reads_or_writes_rows(taxi: Table):
    modules = after_command("tables")
    assert not modules & set(HEAVY)
    assert not {name for name in modules if name.split(".")[:1] == ["underlay"] and name.split(".")[1:2] in
                [[layer] for layer in LAYERS]}  # fmt: skip


def test_a_listing_in_python_loads_nothing_that_reads_or_writes_rows(taxi: Table):
    modules = loaded("import underlay\nassert underlay.connect('lake').tables()")
    assert not modules & set(HEAVY)
    assert not {name for name in modules if name.startswith(("underlay.ingest", "underlay.spark", "underlay.scan"))}


def test_a_query_without_tables_loads_duckdb_and_arrow_and_little_else(taxi: Table):
    modules = after_command("sql", "select 1")
    assert {"duckdb", "pyarrow"} <= modules
    assert not modules & {*HEAVY, "pyarrow.dataset", "pyarrow.compute"} - {"duckdb", "pyarrow", "numpy"}
    assert not {name for name in modules if name.startswith(("underlay.ingest", "underlay.registry", "underlay.scan"))}


def test_a_query_of_a_table_loads_neither_pandas_nor_what_parses_conditions(taxi: Table):
    modules = after_command("sql", "select * from taxi.trips where fare > 40")
    assert not modules & {"pandas", "sqlglot", "sqlalchemy", "typer", "pyspark"}
    assert not {name for name in modules if name.startswith(("underlay.ingest", "underlay.spark"))}


@pytest.mark.parametrize("command", ["tables", "sql"])
def test_options_that_are_read_without_typer_are_those_that_typer_knows(command: str):
    from typer.main import get_command

    known = {name: option for option in get_command(app.app).commands[command].params for name in option.opts}
    for name, option in QUICK[command].items():
        assert known[name].name == option.parameter
        assert known[name].multiple == option.is_list
        assert bool(getattr(known[name], "is_flag", False)) == (option.read is None)
    assert {one.name for one in known.values()} - {"long"} == set(parse(command, []) or ())


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("tables", ["--long"]),
        ("tables", ["extra"]),
        ("sql", ["select 1", "select 2"]),
        ("sql", ["--limit", "x"]),
        ("sql", ["--format", "nothing"]),
        ("sql", ["-- a comment\nselect 1"]),
        ("sql", ["--json=yes"]),
        ("sql", ["--lake"]),
        ("sql", ["--debug", "select 1"]),
    ],
)
def test_arguments_that_are_not_certainly_right_are_left_to_typer(command: str, arguments: list[str]):
    assert parse(command, arguments) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["tables"],
        ["tables", "--json"],
        ["sql", "select * from taxi.trips order by id", "--limit=2", "--format", "csv"],
        ["sql", "select $a as a", "--param", "a=1", "--json"],
        ["sql", "select nothing"],
        ["tables", "--lake", "missing"],
    ],
)
def test_both_ways_do_the_same(taxi: Table, arguments: list[str], monkeypatch: pytest.MonkeyPatch):
    quick = underlay(*arguments)
    monkeypatch.setattr("underlay.cli.quick.parse", lambda *_: None)
    assert underlay(*arguments) == quick


def test_help_is_read_from_a_file():
    modules = after_command("sql", "--help")
    assert not modules & {*HEAVY, "underlay.cli.app", "underlay.cli.quick"}
    assert Path(main.HELP).exists()

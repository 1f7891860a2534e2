"""What commands load before they do anything: by counts of modules, never by time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pytest

from tests.cli.command import underlay
from underlay.api.table import Table
from underlay.cli import app, main
from underlay.cli.quick import QUICK, is_of_values, parse

HEAVY = ["pandas", "pyspark", "sqlalchemy", "duckdb", "pyarrow", "numpy", "sqlglot", "typer", "pydantic", "rich"]
UNASKED = ["configparser", "hashlib", "html", "obstore", "tomllib"]
"""What a lake on a local disk that is named by an option needs none of."""
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
    modules = after_command("tables", "--lake", "lake")
    assert not modules & {*HEAVY, *UNASKED}
    assert not {name for name in modules if name.split(".")[:1] == ["underlay"] and name.split(".")[1:2] in
                [[layer] for layer in LAYERS]}  # fmt: skip


def test_a_listing_in_python_loads_nothing_that_reads_or_writes_rows(taxi: Table):
    modules = loaded("import underlay\nassert underlay.connect('lake').tables()")
    assert not modules & set(HEAVY)
    assert not {name for name in modules if name.startswith(("underlay.ingest", "underlay.spark", "underlay.scan"))}


def test_a_query_without_tables_loads_duckdb_and_arrow_and_little_else(taxi: Table):
    modules = after_command("sql", "select 1", "--lake", "lake")
    assert {"duckdb", "pyarrow"} <= modules
    assert not modules & {*HEAVY, *UNASKED, "pyarrow.dataset", "pyarrow.compute"} - {"duckdb", "pyarrow"}
    assert not {name for name in modules if name.startswith(("underlay.ingest", "underlay.registry", "underlay.scan"))}


def test_a_query_of_a_table_loads_neither_pandas_nor_what_parses_conditions(taxi: Table):
    modules = after_command("sql", "select * from taxi.trips where fare > 40")
    assert not modules & {"pandas", "sqlglot", "sqlalchemy", "typer", "pyspark"}
    assert not {name for name in modules if name.startswith(("underlay.ingest", "underlay.spark"))}


PLAIN = """select 1 as i, 1.5::float f, 0.1 d, 1.10::decimal(38, 2) c, 'é' s, '\\xff'::blob b, true t, null n,
    170141183460469231731687303715884105727::hugeint h, '00000000-0000-0000-0000-000000000001'::uuid u,
    timestamp '2024-01-01 12:00:00.000001' us, timestamptz '2024-01-01 00:00:00+02' tz, date '0001-01-01' dd,
    timestamp_ns '2024-01-01 00:00:00.000000001' ns, time '12:00:00' tt, [1, null] l, [[1.5::float]] ll,
    {'a': 1, 'b': ['x']} st, map {'k': 1} m, 'a'::enum('a', 'b') e"""
VALUES = f"{PLAIN}, [1, 2]::integer[2] arr, union_value(k := 1) un, bitstring('101', 3) bits, interval '3 days' iv"


@pytest.mark.parametrize("format", ["table", "vertical", "markdown", "csv", "json", "ndjson", "parquet", "arrow"])
def test_arrow_without_numpy_writes_what_it_writes_with_numpy(taxi: Table, tmp_path: Path, format: str):
    query = PLAIN if format in ("parquet", "arrow") else VALUES
    given = ["sql", query, "--format", format, "--lake", "lake", "--output"]
    after_command(*given, str(tmp_path / "without"))
    assert underlay(*given, tmp_path / "with").code == 0
    read = pa.feather.read_table if format == "arrow" else Path.read_bytes  # there is padding in Arrow's bytes
    assert read(tmp_path / "without") == read(tmp_path / "with")


@pytest.mark.parametrize(
    "text",
    [
        "from taxi.trips",
        "select 1 from taxi.trips",
        "select (table taxi.trips)",
        "select 1; drop table taxi.trips",
        "select count(*) from (show tables)",
        "with a as (select 1) select * from a",
        "select 'not closed",
        "",
    ],
)
def test_a_query_that_may_read_a_table_has_numpy(text: str):
    assert not is_of_values(text)


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

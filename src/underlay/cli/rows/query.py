"""`underlay scan`, `sql` and `plan`: rows of a table, and what reading them takes."""

from __future__ import annotations

import json as jsonlib
import re
import sys
from collections.abc import Sequence

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.cli.common.output import binary_output, print_json
from underlay.cli.common.table_choice import with_near_names
from underlay.cli.pm.choice import split_names
from underlay.cli.rows.row_output import write_rows
from underlay.errors import InvalidRequest, TableNotFound

STDIN = "-"
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)

Parameter = str | int | float | bool | None


def scan_table(
    table: Table, *, columns: str | None, where: str | None, limit: int | None, format: str, count: bool
) -> None:
    """Rows that match, or how many they are."""
    if not count:
        scan = table.scan(split_names(columns), where)
        _check_output(format)
        write_rows(scan.schema, scan.to_batches(), format=format, limit=limit)
        return
    if columns is not None or limit is not None or format in ("csv", "arrow", "vertical"):
        raise InvalidRequest("--count prints one number", hint="Leave out --columns, --limit and --format.")
    found = table.count(where)
    if format == "json":
        print_json({"table": table.name, "version": table.version, "count": found})
    else:
        print(found)


def run_query(lake: Lake, text: str, *, parameters: Sequence[str], format: str, limit: int | None) -> None:
    """The rows of an SQL query, which is read from stdin for `-`."""
    _check_output(format)
    query = sys.stdin.read() if text == STDIN else text
    try:
        result = lake.sql(query, read_parameters(parameters))
    except TableNotFound as error:
        raise with_near_names(error, lake, error.problem.rpartition(" ")[2]) from None
    with result:
        write_rows(result.schema, result.to_batches(), format=format, limit=limit)


def show_plan(table: Table, *, columns: str | None, where: str | None, json: bool) -> None:
    """What a scan would read, and why nothing else."""
    plan = table.plan(split_names(columns), where)
    if json:
        print_json({"name": table.name, "version": plan.version, **plan.to_dict()})
    else:
        print(plan.explain())


def read_parameters(texts: Sequence[str]) -> list[Parameter] | dict[str, Parameter] | None:
    """Values for `?`, or `name=value` for `$name`. A value is JSON if it reads as that, and else text."""
    if not texts:
        return None
    named = [_NAMED.fullmatch(text) for text in texts]
    if not any(named):
        return [_parameter(text) for text in texts]
    if not all(named):
        raise InvalidRequest("--param is either NAME=VALUE or VALUE for all", hint="A text with = in it: '\"a=b\"'.")
    return {match[1]: _parameter(match[2]) for match in named if match}


def _parameter(text: str) -> Parameter:
    try:
        value = jsonlib.loads(text)
    except ValueError:
        return text
    return value if value is None or isinstance(value, str | int | float | bool) else text


def _check_output(format: str) -> None:
    """Refuse bytes for a terminal before any work is done for them."""
    if format == "arrow":
        binary_output()

"""`underlay scan`, `sql` and `plan`: print rows of a table, and what reading them costs."""

from __future__ import annotations

import json as jsonlib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from underlay.cli.common.formats import BINARY, FOR_PEOPLE, RowsAs, choose_format
from underlay.cli.common.output import print_json
from underlay.cli.rows.agreement import is_agreed
from underlay.cli.rows.row_output import check_output, write_rows, write_text
from underlay.errors import InvalidRequest, TableNotFound, from_os_error
from underlay.local.text.words import WordType, split_statements, words_of

if TYPE_CHECKING:
    from underlay.api.lake import Lake
    from underlay.api.table import Table

STDIN = "-"
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)

Parameter = str | int | float | bool | None
Parameters = list[Parameter] | dict[str, Parameter] | None


def scan_table(
    table: Table,
    *,
    columns: str | None,
    where: str | None,
    param: Sequence[str] | None,
    limit: int | None,
    format: RowsAs | None,
    json: bool,
    output: str | None,
    count: bool,
) -> None:
    """Print the matching rows, or their number."""
    from underlay.cli.pm.choice import split_names

    chosen = choose_format(format, json, output)
    if not count:
        scan = table.scan(split_names(columns), where, params=read_parameters(param or ()))
        check_output(chosen, output)
        write_rows(scan.schema, scan.to_batches(), format=chosen, limit=limit, output=output)
        return
    is_plain = chosen in (RowsAs.TABLE, RowsAs.JSON, RowsAs.NDJSON)
    if columns is not None or limit is not None or output is not None or not is_plain:
        raise InvalidRequest("--count prints one number", hint="Leave out --columns, --limit, --format and --output.")
    found = table.count(where, params=read_parameters(param or ()))
    if chosen is RowsAs.TABLE:
        print(found)
    else:
        print_json({"table": table.name, "version": table.version, "count": found})


def sql_command(
    *,
    text: str | None,
    file: str | None,
    param: Sequence[str] | None,
    limit: int | None,
    format: RowsAs | None,
    output: str | None,
    lake: str | None,
    option: Sequence[str] | None,
    yes: bool,
    json: bool,
) -> None:
    """`underlay sql`: statements from the command line, a file or stdin; without any, a shell."""
    from underlay.cli.common.lake_choice import open_to_read

    if text is not None and file is not None:
        raise InvalidRequest("a statement and a file were given", hint="Leave out one of them.")
    chosen = choose_format(format, json, output)
    check_output(chosen, output)
    parameters = read_parameters(param or ())
    if text is None and file is None and sys.stdin.isatty():
        if output is not None or param:
            raise InvalidRequest("--output and --param are for statements", hint="Write the SQL after sql, or use -f.")
        from underlay.cli.rows.shell import run_shell

        run_shell(open_to_read(lake, option), format=chosen, limit=limit, yes=yes)
        return
    script = text if text not in (None, STDIN) else _read_script(file or STDIN)
    opened = open_to_read(lake, option)
    run_statements(opened, script or "", parameters, format=chosen, limit=limit, output=output, yes=yes)


def run_statements(
    lake: Lake,
    text: str,
    parameters: Parameters,
    *,
    format: RowsAs,
    limit: int | None,
    output: str | None = None,
    yes: bool = False,
) -> None:
    """Print the rows of each statement in turn. Stops at the first that fails, or that the user declines."""
    statements = split_statements(text)
    if len(statements) < 2:
        if is_agreed(lake, text, yes=yes):
            run_query(lake, text, parameters, format=format, limit=limit, output=output)
        return
    if output is not None or format in BINARY:
        raise InvalidRequest(
            "--output and binary formats take only one statement", found=f"{len(statements)} statements"
        )
    if isinstance(parameters, list):
        raise InvalidRequest("values for ? are for one statement", hint="Name them: $name, and --param name=value.")
    for number, statement in enumerate(statements):
        if number and format in (*FOR_PEOPLE, RowsAs.MARKDOWN):
            print()
        if not is_agreed(lake, statement, yes=yes):
            return
        run_query(lake, statement, _used(parameters, statement), format=format, limit=limit)


def run_query(
    lake: Lake,
    text: str,
    parameters: Parameters,
    *,
    format: RowsAs,
    limit: int | None,
    output: str | None = None,
    is_shell: bool = False,
) -> None:
    """Print the rows of one SQL query. The answer to EXPLAIN is printed as text for people."""
    try:
        result = lake.sql(text, parameters)
    except TableNotFound as error:
        from underlay.cli.common.table_choice import with_near_names

        raise with_near_names(error, lake, error.problem.rpartition(" ")[2]) from None
    with result:
        if result.is_explanation and format in FOR_PEOPLE:
            write_text(f"{result}\n", output)
            return
        batches = result.to_batches()
        write_rows(result.schema, batches, format=format, limit=limit, output=output, is_shell=is_shell)


def _read_script(name: str) -> str:
    """The text of a file, or of stdin for `-`. Raises InvalidRequest, NotFound."""
    try:
        if name == STDIN:
            return sys.stdin.read()
        with open(name, encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        raise from_os_error(error, name) from None
    except UnicodeDecodeError:
        raise InvalidRequest("the file is not UTF-8 text", place="stdin" if name == STDIN else name) from None


def _used(parameters: Mapping[str, Parameter] | None, statement: str) -> dict[str, Parameter] | None:
    """The values that a statement uses: DuckDB refuses others."""
    if parameters is None:
        return None
    names = {word.text[1:] for word in words_of(statement) if word.token_type is WordType.PARAMETER}
    return {name: value for name, value in parameters.items() if name in names} or None


def show_plan(table: Table, *, columns: str | None, where: str | None, param: Sequence[str] | None, json: bool) -> None:
    """Show what a scan would read, and why it skips the rest."""
    from underlay.cli.pm.choice import split_names

    plan = table.plan(split_names(columns), where, params=read_parameters(param or ()))
    if json:
        print_json({"name": table.name, "version": plan.version, **plan.to_dict()})
    else:
        print(plan.explain())


def read_parameters(texts: Sequence[str]) -> Parameters:
    """Parse values for `?`, or `name=value` for `$name`. A value is JSON if it parses as such, else text."""
    if not texts:
        return None
    named = [_NAMED.fullmatch(text) for text in texts]
    if not any(named):
        return [_parameter(text) for text in texts]
    if not all(named):
        raise InvalidRequest(
            "--param is either NAME=VALUE or VALUE for all", hint="Quote a text with = in it: '\"a=b\"'."
        )
    return {match[1]: _parameter(match[2]) for match in named if match}


def _parameter(text: str) -> Parameter:
    try:
        value = jsonlib.loads(text)
    except ValueError:
        return text
    return value if value is None or isinstance(value, str | int | float | bool) else text

"""`underlay upsert`, `delete`, `update`, `alter` and `changes`."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace

import pyarrow as pa

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.update.result import Changed
from underlay.cli.common.formats import RowsAs, choose_format
from underlay.cli.common.output import is_confirmed, need_yes, print_json, say, show_count
from underlay.cli.common.table_choice import open_newest
from underlay.cli.pm.choice import split_names
from underlay.cli.rows.data_file import FileReading, columns_of, find_repeatable, read_data, with_names
from underlay.cli.rows.query import read_parameters
from underlay.cli.rows.row_output import check_output, write_rows
from underlay.errors import InvalidRequest
from underlay.ingest.rows.reading import NewColumnsPolicy
from underlay.ingest.source.find import source_options
from underlay.local.clauses.reader import place_of
from underlay.local.show.change import show_change
from underlay.local.text.time_travel import quoted
from underlay.local.text.words import words_of
from underlay.schema.names import parse_path
from underlay.store.open import Option
from underlay.values.no_rows import no_rows

_PLACE = re.compile(r"line (\d+), column (\d+)")
_BETWEEN = ", "


def upsert_file(
    table: Table,
    file: str,
    reading: FileReading,
    options: Mapping[str, Option],
    *,
    key: str | None,
    token: str | None,
    dry_run: bool,
    json: bool,
) -> None:
    """Replace and add the rows of a file. `options` are those of the file's store."""
    rows = _rows_of(table, file, reading, options)
    _report(table, table.upsert(rows, split_names(key), token, dry_run=dry_run), is_dry_run=dry_run, json=json)


def delete_rows(
    table: Table,
    *,
    where: str | None,
    param: Sequence[str] | None,
    rows: str | None,
    reading: FileReading,
    options: Mapping[str, Option],
    key: str | None,
    token: str | None,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> None:
    """Delete rows by a condition, by their keys, or all of them."""
    if rows is None and (key is not None or options or reading != FileReading()):
        raise InvalidRequest(
            "--key, --format and the options of files are for --rows",
            hint="Give --rows, a file with the keys to delete.",
        )
    if where is None and rows is None and not dry_run:
        _confirm(f"{table.name}: all {len(table):,} rows would be deleted", yes=yes)
    named = split_names(key)
    given = None if rows is None else _rows_of(table, rows, reading, options, only=named or _key_of(table))
    done = table.delete(
        where,
        rows=given,
        key=named,
        params=read_parameters(param or ()),
        token=token,
        dry_run=dry_run,
    )
    _report(table, done, is_dry_run=dry_run, json=json)


def update_rows(
    table: Table,
    values: Sequence[str],
    *,
    where: str | None,
    param: Sequence[str] | None,
    token: str | None,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> None:
    """Update the rows that match, or all of them."""
    assigned: dict[str, str] = {}
    for text in values:
        column, sign, value = text.partition("=")
        if not sign or not column.strip() or not value.strip():
            raise InvalidRequest("not a column and its value", found=text, expected='such as --set "fare=fare * 1.1"')
        if column.strip() in assigned:
            raise InvalidRequest("a column is set twice", found=column.strip())
        assigned[column.strip()] = value.strip()
    if where is None and not dry_run:
        _confirm(f"{table.name}: all {len(table):,} rows would be updated", yes=yes)
    done = table.update(assigned, where, params=read_parameters(param or ()), token=token, dry_run=dry_run)
    _report(table, done, is_dry_run=dry_run, json=json)


def alter_table(lake: Lake, name: str, changes: Sequence[str], *, dry_run: bool, yes: bool, json: bool) -> None:
    """Change a table's definition with the changes of ALTER TABLE."""
    table = open_newest(lake, name)
    dataset, _, short = table.name.partition(".")
    for change in changes:
        if not any(map(str.isspace, change.strip())):
            raise InvalidRequest(
                "not a change of a table", found=change, hint='Put each in quotes: "add column tip double".'
            )
    text = _BETWEEN.join(changes)
    begin = f"ALTER TABLE {quoted(dataset)}.{quoted(short)} "
    statement = f"{begin}{text}"
    with _PlacesOfChanges("EXPLAIN " + begin, changes):
        explained = str(lake.sql(f"EXPLAIN {statement}"))
    if dry_run:
        if json:
            print_json({"table": table.name, "is_done": False, "version": table.version, "what": explained})
        else:
            say(explained)
        return
    if any(word.text.upper() == "DROP" for word in words_of(text)):
        _confirm(explained, yes=yes)
    with _PlacesOfChanges(begin, changes):
        ((*_, version),) = lake.sql(statement).fetchall()
    if json:
        print_json({"table": table.name, "is_done": True, "version": version})
    else:
        say(f"{table.name}: version {version}; {'; '.join(changes)}")


class _PlacesOfChanges:
    """Gives errors positions in the typed changes, not in the statement that is composed from them."""

    def __init__(self, begin: str, changes: Sequence[str]) -> None:
        self._begin = begin
        self._changes = changes

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InvalidRequest) and (found := _PLACE.match(error.place or "")) is not None:
            error.place = self._typed(int(found[1]), int(found[2])) + (error.place or "")[found.end() :]

    def _typed(self, line: int, column: int) -> str:
        lines = (self._begin + _BETWEEN.join(self._changes)).split("\n")
        at = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1 - len(self._begin)
        number = 0
        while number < len(self._changes) - 1 and at >= len(self._changes[number]) + len(_BETWEEN):
            at -= len(self._changes[number]) + len(_BETWEEN)
            number += 1
        where = place_of(self._changes[number], at)
        return where if len(self._changes) == 1 else f"change {number + 1}, {where}"


def print_changes(
    table: Table,
    begin: int,
    end: int | None,
    *,
    columns: str | None,
    limit: int | None,
    dry_run: bool,
    format: RowsAs | None,
    json: bool,
    output: str | None,
) -> None:
    """Print the inserted and deleted rows, or their number."""
    chosen = choose_format(format, json, output)
    found = table.changes(begin, end, columns=split_names(columns))
    if dry_run:
        last = table.version if end is None else end
        if chosen is RowsAs.TABLE:
            print(f"{show_count(found.count(), 'row')} inserted or deleted after version {begin}, up to version {last}")
        else:
            print_json({"table": table.name, "from": begin, "to": last, "rows": found.count()})
        return
    check_output(chosen, output)
    write_rows(found.schema, found.to_batches(), format=chosen, limit=limit, output=output)


def _key_of(table: Table) -> list[str]:
    """The top-level columns of the table's key."""
    leaves = table.snapshot().schema.leaf_by_id
    return [leaves[field].path[0] for field in table.definition.key if field in leaves]


def _rows_of(
    table: Table,
    file: str,
    reading: FileReading,
    options: Mapping[str, Option],
    *,
    only: Collection[str] | None = None,
) -> pa.Table:
    """The rows of the files that a name or pattern matches, or of stdin, with all of their columns, or `only` these."""
    of_store = source_options([file], options, table.stores.lake.url, table.stores.options)
    schema = table.snapshot().schema
    with find_repeatable(file, reading, of_store) as found:
        found = [with_names(data, schema) for data in found]
        known = {name.lower() for name in columns_of(found).names}
        wanted = known if only is None else known.intersection(parse_path(name)[0].lower() for name in only)
        read = replace(schema, fields=tuple(field for field in schema.fields if field.name.lower() in wanted))
        others: NewColumnsPolicy = "error" if only is None else "ignore"
        parts = [rows for data in found for rows, _ in read_data(data, read, new_columns=others)]
    if not parts:
        return no_rows(table.schema).select(list(read.names))
    return pa.concat_tables(parts)


def _report(table: Table, done: Changed, *, is_dry_run: bool, json: bool) -> None:
    if json:
        print_json({"table": table.name, "is_done": not is_dry_run and not done.is_repeat, **asdict(done)})
    else:
        say(show_change(table.name, done, is_dry_run=is_dry_run))


def _confirm(what: str, *, yes: bool) -> None:
    """Ask for confirmation, unless it was given already. Without a terminal to ask on, end the command."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        need_yes(what)
    if not is_confirmed(what):
        import typer

        raise typer.Exit(0)

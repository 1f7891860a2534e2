"""A dry run: what an ingest would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from underlay.errors import SourceEmpty
from underlay.ingest.exactly_once.ledger import Contents, Ledger, LedgerEntry, classify, sort_out
from underlay.ingest.exactly_once.replaced import check_replaceable, source_column
from underlay.ingest.rows.columnar import check_types
from underlay.ingest.rows.path_columns import PathColumns, new_path_columns
from underlay.ingest.rows.reading import RowRules
from underlay.ingest.rows.schema_drift import check_names, drift, new_column, with_table_names
from underlay.ingest.run.ingest import find_wanted, select
from underlay.ingest.run.new_table import SAMPLES, columns_for, exists, look_into, spread
from underlay.ingest.run.summary import SourceFailure
from underlay.ingest.source.file_format import FileFormat, kind_of
from underlay.ingest.source.source import Source
from underlay.ingest.work.execute import FAULTS, reason_of
from underlay.ingest.work.new_columns import join_columns
from underlay.ingest.work.settings import Settings
from underlay.schema.convert.arrow import to_arrow, to_arrow_field
from underlay.schema.convert.new_fields import lacking_names
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import OpenTable


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What an ingest would do now. Columns and problems are those of a sample of sources, which were opened."""

    table: str
    is_created: bool
    """Whether the table would be created."""
    ledger: Ledger
    """All sources, by what the table knows of them."""
    wanted: tuple[LedgerEntry, ...]
    """Sources that would be read."""
    columns: pa.Schema | None = None
    """The columns of a table that would be created."""
    new_columns: pa.Schema
    """Columns of sources that the table lacks: they would be added, left out, or fail their sources."""
    problems: tuple[SourceFailure, ...] = ()
    """Sources that would fail."""

    @property
    def size_bytes(self) -> int:
        """The size of the sources that would be read."""
        return sum(entry.found.size_bytes for entry in self.wanted)


def dry_run(lake: LakeCatalog, name: str, settings: Settings) -> DryRun:
    """What `ingest` would do with these settings. Changes nothing; reads the beginnings of at most 20 sources.

    Raises what `ingest` would raise before it reads: for patterns, rows that cannot be replaced, a new table's columns.
    """
    found, again = find_wanted(settings)
    if not exists(lake, name):
        ledger = classify(found, {}, ())
        made = columns_for(found, settings) if found else None
        new, problems = _look_into(found, settings, made) if made is not None else (pa.schema([]), [])
        return DryRun(
            table=name,
            is_created=True,
            ledger=ledger,
            wanted=ledger.new,
            columns=to_arrow(made) if made is not None else None,
            new_columns=new,
            problems=tuple(problems),
        )
    table = OpenTable(lake, name)
    head = table.head()
    ledger = sort_out(table, head, found, Contents(options=settings.store_options))
    wanted = ledger.wanted(select(settings, head, again))
    check_replaceable(head, [entry.found.uri for entry in wanted if entry.rows_there])
    schema = from_record(head.root.definition.schema)
    new, problems = _look_into([entry.found for entry in wanted], settings, schema)
    return DryRun(
        table=name, is_created=False, ledger=ledger, wanted=tuple(wanted), new_columns=new, problems=tuple(problems)
    )


def _look_into(
    found: Sequence[Source], settings: Settings, schema: TableSchema
) -> tuple[pa.Schema, list[SourceFailure]]:
    reading = RowRules(
        schema=schema,
        dialect=settings.dialect,
        new_columns="error" if settings.new_columns == "error" else "ignore",
        source_column=source_column(schema),
        record_bytes=settings.record_bytes,
    )
    seen: list[tuple[str, pa.Schema]] = []
    problems: list[SourceFailure] = []
    for one in spread(found, SAMPLES):
        try:
            kind = settings.kind or kind_of(one.uri)
            if kind in (FileFormat.CSV, FileFormat.TSV) and settings.dialect.is_positional:
                columns = to_arrow(schema)
            else:
                _, _, columns = look_into(one, settings)
            columns = with_table_names(columns, schema.names)
            if settings.hive:
                columns = _with_path(columns, one.uri, reading)
            new = pa.schema(list(drift(schema, columns).new))
            seen.append((one.uri, new))
            _check(columns, new, kind, reading, settings, one.uri)
        except SourceEmpty:
            continue
        except FAULTS as error:
            problems.append(SourceFailure(uri=one.uri, reason=reason_of(error, one.uri, settings.new_columns)))
    columns, refused = join_columns(seen, schema)
    if settings.new_columns == "add":
        problems += [SourceFailure(uri=uri, reason=reason) for uri, reason in refused.items()]
    return columns, problems


def _with_path(columns: pa.Schema, uri: str, reading: RowRules) -> pa.Schema:
    """The columns of a source and of its path. Raises what reading the source would raise for the path."""
    given = PathColumns.of(uri, replace(reading, new_columns="ignore"))
    known = [to_arrow_field(reading.schema.column(name)) for name in given.values]
    more = [field for field in (*known, *new_path_columns(uri, reading.schema)) if field.name not in columns.names]
    return pa.schema([*columns, *more])


def _check(
    columns: pa.Schema, new: pa.Schema, kind: FileFormat, reading: RowRules, settings: Settings, uri: str
) -> None:
    """Raise SchemaMismatch for a source whose columns would not fit even after the new columns are added."""
    if kind is FileFormat.JSON:  # what a line lacks is reported line by line
        if len(new) and settings.new_columns == "error":
            raise new_column(lacking_names(new, reading.schema)[0], reading.schema.names, uri)
        return
    added = [name for name in new.names if name not in reading.schema.names] if settings.new_columns == "add" else []
    own = [name for name in columns.names if name != reading.source_column and name not in added]
    if own or not added:
        check_names(reading, own, uri)
    if kind in (FileFormat.PARQUET, FileFormat.ARROW):
        check_types(columns, [name for name in own if name in reading.schema.names], reading, uri)

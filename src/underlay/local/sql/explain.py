"""Adds to DuckDB's EXPLAIN: for each scan of a table, which files and blocks it reads, and why it skips the rest.

DuckDB decides only when a query begins what it pushes into which scan. So the explained query runs over tables without
rows, which record what is requested; under EXPLAIN ANALYZE it runs over the tables themselves, which record it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Timer

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.hot.read.explain import explain_hot
from underlay.local.dataset.scanner import TableScanner
from underlay.local.dataset.source import EngineDataset
from underlay.local.sql.tables import QueriedTable
from underlay.plan.explain import explain

PROBE_SECONDS = 5.0
"""How long the query may run over empty tables: it may generate a trillion rows."""
_INDENT = "  "
_DRAWING = ("┌", "╭", "+")


@dataclass(frozen=True, slots=True)
class NotedScan:
    """A scan that DuckDB requested."""

    columns: tuple[str, ...] | None
    where: pc.Expression | None


@dataclass(frozen=True, slots=True)
class NotedTable:
    """A table of the query, its relevant rows, and its scans."""

    source: QueriedTable
    rows: EngineDataset
    scans: list[NotedScan] = field(default_factory=list)


class NotingDataset(ds.Dataset):
    """A table that records its scans, with its rows or without any."""

    def __init__(self, table: NotedTable, rows: EngineDataset | None) -> None:
        self._table = table
        self._rows = rows

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._table.rows.schema

    def scanner(  # type: ignore[override]  # what DuckDB asks for
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: object
    ) -> ds.Scanner | TableScanner:
        """The requested scan."""
        self._table.scans.append(NotedScan(None if columns is None else tuple(columns), filter))
        if self._rows is not None:
            return self._rows.scanner(columns, filter)
        chosen = None if columns is None else list(columns)
        return ds.Scanner.from_batches(iter(()), schema=self.schema, columns=chosen)


def run_without_rows(connection: duckdb.DuckDBPyConnection, text: str, parameters: object) -> dict[str, str]:
    """Run the query only to record its scans. Returns its columns with DuckDB's types; none for a long query, which is
    interrupted, and for columns that share a name.
    """
    timer = Timer(PROBE_SECONDS, connection.interrupt)
    timer.start()
    try:
        found = connection.execute(text, parameters).description or ()
        connection.fetchone()
    except duckdb.InterruptException:
        return {}
    finally:
        timer.cancel()
    columns = {name: str(kind) for name, kind, *_ in found}
    return columns if len(columns) == len(found) else {}


def with_pruning(plan: pa.Table, scans: Sequence[str]) -> pa.Table:
    """DuckDB's answer with what each scan reads: below a drawing, or as separate rows for JSON and the like."""
    keys, texts = plan.column(0).to_pylist(), plan.column(1).to_pylist()
    if str(texts[-1]).startswith(_DRAWING):
        texts[-1] = "\n".join([str(texts[-1]).rstrip("\n"), *scans])
    else:
        keys += ["underlay_plan"] * len(scans)
        texts += scans
    return pa.table([pa.array(keys, pa.string()), pa.array(texts, pa.string())], names=plan.schema.names)


def scan_texts(tables: Sequence[NotedTable]) -> list[str]:
    """What each scan of each table reads."""
    return [text for table in tables for text in _scan_texts(table)]


def counted_text(table: QueriedTable) -> str:
    """The text for a count that metadata answers."""
    return f"{_name(table)}\n{_INDENT}counted from metadata: no data is read\n"


def _scan_texts(table: NotedTable) -> list[str]:
    name = _name(table.source)
    if not table.scans:
        return [f"{name}\n{_INDENT}not read: DuckDB needs none of its rows\n"]
    texts = []
    for scan in table.scans:
        query = table.rows.scanner(scan.columns, scan.where).query
        lines = [explain(query.plan), *explain_hot(query.snapshot, query.plan)]
        if query.rest is not None:
            lines.append(f"rows are then filtered by: {query.rest}")
        body = "\n".join(lines).replace("\n", f"\n{_INDENT}")
        kept, total = query.plan.kept, query.plan.totals
        heading = f"{name}: reads {kept.blocks:,} of {total.blocks:,} blocks in {kept.files:,} of {total.files:,} files"
        texts.append(f"{heading}\n{_INDENT}{body}\n")
    return texts


def _name(table: QueriedTable) -> str:
    source = table.dataset.source
    return f"{source.name or table.table}, version {source.snapshot.version}"

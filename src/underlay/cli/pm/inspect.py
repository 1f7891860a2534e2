"""`underlay pm show`, `pm dump` and `pm versions`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from underlay.cli.common.output import end_with, print_json, print_table, printable, show_bytes, show_count, try_each
from underlay.cli.pm.choice import column_indices, open_version
from underlay.errors import UnderlayError, Unsupported
from underlay.pm.dump import dump
from underlay.pm.file import read_committed
from underlay.pm.format.footers import SidecarFooter, walk
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.format.statistics import null_counts
from underlay.pm.format.types import describe
from underlay.pm.format.values import Buffer
from underlay.pm.prune.bounds import show_bounds
from underlay.values.physical import Codec, PhysicalType

_SHOWN_ROW_GROUPS = 20


def show_sidecars(files: list[Path], *, columns: list[str], version_size: int | None, json: bool) -> None:
    """One version of each file: summary, columns, row groups, statistics of the chosen columns."""

    def show_one(file: Path) -> None:
        sidecar = open_version(file, version_size)
        try:
            chosen = column_indices(sidecar, columns)
            if json:
                print_json(_as_json(file, sidecar, chosen or range(sidecar.column_count)))
            else:
                _print_sidecar(file, sidecar, chosen)
        except UnderlayError as error:
            raise error.at(str(file)) from None

    end_with(try_each(files, show_one, "reading"))


def _print_sidecar(file: Path, sidecar: Sidecar, chosen: list[int]) -> None:
    _print_summary(file, sidecar)
    print()
    print_table(
        ("#", "column", "id", "type", "stored as", "levels"),
        (_column_row(sidecar, i) for i in range(sidecar.column_count)),
    )
    print()
    for index in chosen:
        print(f"statistics of {printable(sidecar.columns[index].name)}:")
        print_table(("row group", "rows", "nulls", "min", "max", "codec", "bytes"), _statistics_rows(sidecar, index))
        print()
    if not chosen:
        _print_row_groups(sidecar)
        print()


def _print_summary(file: Path, sidecar: Sidecar) -> None:
    header, footer = sidecar.header, sidecar.footer
    names = [printable(column.name) for column in sidecar.columns]
    print(
        f"{file}: {show_bytes(sidecar.size)}, {show_count(sidecar.row_group_count, 'row group')},"
        f" {show_count(int(sidecar.num_rows.sum()), 'row')}"
    )
    print(
        f"Parquet file: {sidecar.parquet_size} bytes ({show_bytes(sidecar.parquet_size)}),"
        f" {show_bytes(footer.unused_bytes)} of it unused"
    )
    if header.designated_timestamp >= 0:
        print(f"designated timestamp: {names[header.designated_timestamp]}")
    if header.sorting:
        print(f"sorted by: {', '.join(_order(sidecar, index) for index in header.sorting)}")
    if len(header.bloom_columns):
        where = "in the Parquet file" if header.external_blooms else "in the sidecar"
        print(f"bloom filters ({where}): {', '.join(names[i] for i in header.bloom_columns.tolist())}")
    if sidecar.sections.seq_txn is not None:
        print(f"sequencer transaction: {sidecar.sections.seq_txn}")


def _order(sidecar: Sidecar, index: int) -> str:
    if index >= sidecar.column_count:
        return f"column {index}, which does not exist"
    column = sidecar.columns[index]
    return printable(column.name) + (" descending" if column.is_descending else "")


def _print_row_groups(sidecar: Sidecar) -> None:
    sizes = sidecar.chunks["size"].sum(axis=1).tolist()
    rows = list(zip(range(sidecar.row_group_count), sidecar.num_rows.tolist(), sizes, strict=True))
    print_table(("row group", "rows", "bytes"), rows[:_SHOWN_ROW_GROUPS])
    if len(rows) > _SHOWN_ROW_GROUPS:
        print(f"… and {len(rows) - _SHOWN_ROW_GROUPS} more; --column and --json show all of them")


def _column_row(sidecar: Sidecar, index: int) -> tuple[object, ...]:
    column = sidecar.columns[index]
    return (
        index,
        column.name,
        column.id,
        describe(column.type),
        _physical(column.physical_type, column.fixed_byte_length),
        f"def {column.max_def_level} rep {column.max_rep_level}",
    )


def _physical(number: int, length: int) -> str:
    if number > max(PhysicalType):
        return f"physical type {number}"
    return PhysicalType(number).name + (f"({length})" if length else "")


def _codec(number: int) -> str:
    return Codec(number).name if number <= max(Codec) else f"codec {number}"


def _statistics_rows(sidecar: Sidecar, index: int) -> list[tuple[object, ...]]:
    chunks = sidecar.column_chunks(index)
    counts, known = null_counts(chunks)
    low, high = show_bounds(sidecar, index)
    return [
        (
            row_group,
            int(sidecar.num_rows[row_group]),
            int(counts[row_group]) if known[row_group] else None,
            low[row_group],
            high[row_group],
            _codec(int(chunks["codec"][row_group])),
            int(chunks["size"][row_group]),
        )
        for row_group in range(sidecar.row_group_count)
    ]


def _as_json(file: Path, sidecar: Sidecar, chosen: Iterable[int]) -> dict[str, object]:
    columns = []
    for index in chosen:
        column = sidecar.columns[index]
        headings = ("row_group", "rows", "null_count", "min", "max", "codec", "bytes", "begin")
        begins = sidecar.column_chunks(index)["begin"].tolist()
        rows = zip(_statistics_rows(sidecar, index), begins, strict=True)
        chunks = [dict(zip(headings, (*row, begin), strict=True)) for row, begin in rows]
        columns.append(
            {
                "name": column.name,
                "id": column.id,
                "type": describe(column.type),
                "type_code": column.type,
                "physical_type": _physical(column.physical_type, column.fixed_byte_length),
                "max_def_level": column.max_def_level,
                "max_rep_level": column.max_rep_level,
                "chunks": chunks,
            }
        )
    return {
        "file": str(file),
        "size": sidecar.size,
        "parquet_size": sidecar.parquet_size,
        "row_groups": sidecar.row_group_count,
        "rows": int(sidecar.num_rows.sum()),
        "unused_bytes": sidecar.footer.unused_bytes,
        "designated_timestamp": sidecar.header.designated_timestamp,
        "sorting": list(sidecar.header.sorting),
        "bloom_columns": sidecar.header.bloom_columns.tolist(),
        "external_blooms": sidecar.header.external_blooms,
        "squash_tracker": sidecar.header.squash_tracker,
        "seq_txn": sidecar.sections.seq_txn,
        "columns": columns,
    }


def dump_sidecar(file: Path, *, version_size: int | None, json: bool) -> None:
    """Every field, in file order."""
    sidecar = open_version(file, version_size)
    try:
        lines = dump(sidecar)
    except UnderlayError as error:
        raise error.at(str(file)) from None
    for line in lines:
        if json:
            print_json(line._asdict())
        else:
            print(line.offset, line.field, printable(line.value), sep="\t")


def list_versions(files: list[Path], *, json: bool) -> None:
    """All versions of each file, newest first."""

    def list_one(file: Path) -> None:
        rows = _versions(file)
        if json:
            for row in rows:
                print_json({"file": str(file), **row})
            return
        if len(files) > 1:
            print(f"{file}:")
        headings = ("sidecar bytes", "Parquet bytes", "row groups", "rows", "unused bytes", "seq txn", "cannot be read")
        shown = len(headings) if any(row["error"] for row in rows) else len(headings) - 1
        print_table(headings[:shown], (list(row.values())[:shown] for row in rows))

    end_with(try_each(files, list_one, "reading"))


def _versions(file: Path) -> list[dict[str, object]]:
    data = read_committed(file)
    try:
        return [_version_row(data, footer, check=footer.size == len(data)) for footer in walk(data, len(data))]
    except UnderlayError as error:
        raise error.at(str(file)) from None


def _version_row(data: Buffer, footer: SidecarFooter, *, check: bool) -> dict[str, object]:
    """One version. If it uses what this release does not know, its row count is missing, but the other versions are
    shown.
    """
    row: dict[str, object] = {
        "size": footer.size,
        "parquet_size": footer.parquet_size,
        "row_groups": footer.row_group_count,
        "rows": None,
        "unused_bytes": footer.unused_bytes,
        "seq_txn": None,
        "error": None,
    }
    try:
        version = decode(data, size=footer.size, check=check)
        version.header.columns()  # a name outside the header is an error here too
        row |= {"rows": int(version.num_rows.sum()), "seq_txn": version.sections.seq_txn}
    except Unsupported as error:
        row["error"] = str(error)
    return row

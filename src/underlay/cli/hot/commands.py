"""Declares `underlay hot`, the commands on hot partitions; what they do is imported when they run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from underlay.cli.common.options import ColumnNames, Json, LakeUrl, StoreOptions, TableName

app = typer.Typer(
    help="Look at hot partitions, seal and compact them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AnyTable = Annotated[str | None, typer.Argument(metavar="DATASET.TABLE", hidden=True, show_default=False)]
Folder = Annotated[Path, typer.Argument(metavar="DIRECTORY", hidden=True, show_default=False)]
HotFolder = Annotated[
    str | None,
    typer.Option(
        "--hot",
        metavar="DIRECTORY",
        help='The directory of hot partitions on this machine. Default: UNDERLAY_HOT, else "hot" in underlay.toml.',
    ),
]
PartitionName = Annotated[
    str | None,
    typer.Option("--partition", metavar="NAME", help="Only this partition, such as 2024-01-31. Default: all."),
]


class HotRowFormat(StrEnum):
    """How rows are written."""

    CSV = "csv"
    ARROW = "arrow"


@app.command()
def status(
    name: AnyTable = None,
    hot: HotFolder = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """List the hot partitions of a table, or of all tables of the lake.

    With their rows, blocks, size, and how much of it is dead; whether a writer is at work, and what is being sealed.

    \b
    Examples:
      underlay hot status --hot data/hot
      underlay hot status taxi.trips --json
    """
    from underlay.cli.hot.status import show_status

    show_status(lake, option, hot, name, json=json)


@app.command()
def seal(
    name: TableName,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Partitions that end by this date or time; UTC without a zone. Default: by now."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All partitions. Default: those that ended.")] = False,
    hot: HotFolder = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Turn finished hot partitions into files of the table, in one commit.

    It happens exactly once, whatever crashes. No other writer may have the table's hot partitions open: it can seal
    them itself.

    \b
    Examples:
      underlay hot seal taxi.trips
      underlay hot seal taxi.trips --before 2024-02-01
    """
    from underlay.cli.hot.seal import seal_table

    seal_table(lake, option, hot, name, before, everything=everything, json=json)


@app.command()
def compact(
    name: TableName,
    hot: HotFolder = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Write the hot partitions of a table anew, without dead bytes. A writer does this by itself where it is due.

    \b
    Examples:
      underlay hot compact taxi.trips
    """
    from underlay.cli.hot.seal import compact_table

    compact_table(lake, option, hot, name, json=json)


@app.command()
def show(directory: Folder, json: Json = False) -> None:
    """Show what a _txn file says: of Underlay's hot partitions, or of a table of QuestDB.

    DIRECTORY is the one that holds _txn, or the file itself.

    \b
    Examples:
      underlay hot show data/hot/taxi/trips
      underlay hot show /var/lib/questdb/db/trades --json
    """
    from underlay.cli.hot.show import show_txn

    show_txn(directory, json=json)


@app.command()
def read(
    directory: Folder,
    columns: ColumnNames = None,
    partition: PartitionName = None,
    format: Annotated[HotRowFormat, typer.Option(help="csv or arrow (an IPC stream).")] = HotRowFormat.CSV,
) -> None:
    """Write the rows of Parquet partitions to stdout, as they are committed: of ours, or of a table of QuestDB.

    They are read through _txn and _pm alone, without a lock and without a footer.

    \b
    Examples:
      underlay hot read data/hot/taxi/trips --partition 2024-01-31
      underlay hot read /var/lib/questdb/db/trades --columns ts,price --format arrow > trades.arrow
    """
    from underlay.cli.hot.read import write_partitions

    write_partitions(directory, columns=columns, partition=partition, format=format.value)


@app.command()
def verify(
    directory: Folder,
    deep: Annotated[bool, typer.Option("--deep", help="Compare all statistics with the rows. Default: no.")] = False,
    json: Json = False,
) -> None:
    """Check that _txn, sidecars and data files of a hot table agree, as they are committed.

    Exits with 1 if something is wrong. What a writer repairs when it opens the table is said so.

    \b
    Examples:
      underlay hot verify data/hot/taxi/trips --deep
    """
    from underlay.cli.hot.verify import verify_partitions

    verify_partitions(directory, is_deep=deep, json=json)

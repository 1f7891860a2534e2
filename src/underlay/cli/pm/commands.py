"""Declares `underlay pm`, the commands on sidecars; what they do is imported when they run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Build, inspect and use _pm sidecars of Parquet files.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Generation(StrEnum):
    """Format generations."""

    V9_4 = "9.4"
    V10 = "10"


class Blooms(StrEnum):
    """What to do with the Parquet file's bloom filters."""

    INLINE = "inline"
    EXTERNAL = "external"
    NONE = "none"


class RowFormat(StrEnum):
    """How rows are written."""

    CSV = "csv"
    ARROW = "arrow"


# Arguments are hidden from the list of options: the usage line names them, the text above the list explains them.
SidecarFile = Annotated[Path, typer.Argument(metavar="FILE", hidden=True, show_default=False)]
SidecarFiles = Annotated[list[Path], typer.Argument(metavar="FILE", hidden=True, show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line. Default: text for people.")]
ColumnNames = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Columns, separated by commas; quote a name with a comma in it. Default: all."),
]
VersionSize = Annotated[
    int | None,
    typer.Option(
        "--version-size",
        metavar="N",
        help='The version for a Parquet file of N bytes, as "pm versions" lists them. Default: the newest.',
    ),
]


@app.command()
def build(
    data: Annotated[list[Path], typer.Argument(metavar="DATA.parquet", hidden=True, show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="OUT", help='Where to write it, for one input. "-" is stdout. Default: NAME.pm.'
        ),
    ] = None,
    out_dir: Annotated[
        Path | None,
        typer.Option(
            "--out-dir", metavar="DIR", help="Where to write NAME.pm; made if missing. Default: beside NAME.parquet."
        ),
    ] = None,
    generation: Annotated[
        Generation, typer.Option(help="Format generation, by the QuestDB that introduced it.")
    ] = Generation.V10,
    blooms: Annotated[
        Blooms, typer.Option(help="Copy the file's bloom filters, store where they are, or leave them out.")
    ] = Blooms.INLINE,
    backfill: Annotated[
        bool, typer.Option(help="Decode missing bounds of the designated timestamp from the data, as QuestDB does.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace existing sidecars. Default: refuse to.")] = False,
    json: Json = False,
) -> None:
    """Build the sidecar of each Parquet file from its footer.

    The sidecar of NAME.parquet is NAME.pm, next to it by default.

    \b
    Examples:
      underlay pm build trips.parquet -o trips.pm
      underlay pm build data/*.parquet --out-dir sidecars --blooms external
    """
    from underlay.cli.pm.build import build_sidecars

    build_sidecars(
        data,
        output=output,
        out_dir=out_dir,
        generation=generation.value,
        blooms=blooms.value,
        backfill=backfill,
        force=force,
        json=json,
    )


@app.command()
def show(
    file: SidecarFiles,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="NAME", help="Show the statistics of this column; repeatable. Default: none."),
    ] = None,
    version_size: VersionSize = None,
    json: Json = False,
) -> None:
    """Show a sidecar: columns, row groups, statistics.

    Sizes are in bytes; – stands for a statistic that is not stored. --json has the statistics of every column,
    or of those chosen.

    \b
    Examples:
      underlay pm show trips.pm
      underlay pm show trips.pm --column pickup --column fare
    """
    from underlay.cli.pm.inspect import show_sidecars

    show_sidecars(file, columns=column or [], version_size=version_size, json=json)


@app.command()
def dump(file: SidecarFile, version_size: VersionSize = None, json: Json = False) -> None:
    """Print every field of a sidecar: offset, field, value.

    One field a line, separated by tabs, in file order and of all versions. Offsets are in bytes.

    \b
    Examples:
      underlay pm dump trips.pm | head
      underlay pm dump trips.pm | grep checksum
    """
    from underlay.cli.pm.inspect import dump_sidecar

    dump_sidecar(file, version_size=version_size, json=json)


@app.command()
def versions(file: SidecarFiles, json: Json = False) -> None:
    """List the versions of a sidecar, newest first.

    A version is known by the size in bytes that its Parquet file had; --version-size of other commands takes it.

    \b
    Examples:
      underlay pm versions _pm
      underlay pm versions table/*/_pm --json
    """
    from underlay.cli.pm.inspect import list_versions

    list_versions(file, json=json)


@app.command()
def verify(
    file: SidecarFiles,
    parquet: Annotated[
        list[Path] | None,
        typer.Option(
            "--parquet",
            metavar="DATA",
            help="The Parquet file to compare with; repeat it for several FILEs, in their order, or give the"
            " directory that has NAME.parquet for each NAME.pm. Default: none, the sidecar alone is checked.",
        ),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Decode all values and check every statistic against them. Default: no.")
    ] = False,
    json: Json = False,
) -> None:
    """Check sidecars, alone or against their Parquet files.

    Alone: structure and checksums of all versions. With --parquet also every byte range and statistic of the newest
    version. Exit code 1 if any fails. With --json: file, ok, error, and problems with all errors.

    \b
    Examples:
      underlay pm verify trips.pm --parquet trips.parquet --deep
      underlay pm verify sidecars/*.pm --parquet data --json
    """
    from underlay.cli.pm.verify import verify_sidecars

    verify_sidecars(file, parquet or [], deep=deep, json=json)


@app.command()
def read(
    file: SidecarFile,
    parquet: Annotated[Path, typer.Option("--parquet", metavar="DATA", help="The Parquet file.", show_default=False)],
    columns: ColumnNames = None,
    row_groups: Annotated[
        str | None,
        typer.Option("--row-groups", metavar="0,3", help="Row groups from 0, separated by commas. Default: all."),
    ] = None,
    version_size: VersionSize = None,
    format: Annotated[
        RowFormat, typer.Option(help="CSV (bytes in hexadecimal, nested values in JSON), or an Arrow IPC stream.")
    ] = RowFormat.CSV,
    schema_from: Annotated[
        Path | None,
        typer.Option(
            "--schema-from",
            metavar="DATA",
            help="Take logical types and paths from this Parquet file's footer. Default: from the sidecar's types.",
        ),
    ] = None,
) -> None:
    """Write rows to stdout, decoded through the sidecar only.

    The Parquet file's own footer is not read. Memory is bounded by a row group.

    \b
    Examples:
      underlay pm read trips.pm --parquet trips.parquet --columns pickup,fare
      underlay pm read trips.pm --parquet trips.parquet --row-groups 0,3 --format arrow > rows.arrow
    """
    from underlay.cli.pm.read import write_rows

    write_rows(
        file,
        parquet,
        columns=columns,
        row_groups=row_groups,
        version_size=version_size,
        format=format.value,
        schema_from=schema_from,
    )


@app.command()
def prune(
    file: SidecarFiles,
    where: Annotated[
        str,
        typer.Option(
            metavar="FILTER",
            help="Comparisons of a column with a value (=, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS [NOT] NULL),"
            " joined by AND, OR and NOT. Times without a zone are UTC.",
            show_default=False,
        ),
    ],
    columns: ColumnNames = None,
    parquet: Annotated[
        Path | None,
        typer.Option(
            "--parquet",
            metavar="DATA",
            help="Take logical types and paths from this Parquet file's footer. Default: from the sidecar's types.",
        ),
    ] = None,
    version_size: VersionSize = None,
    json: Json = False,
) -> None:
    """Show which row groups a filter keeps, and the bytes to read.

    For each row group that cannot hold a matching row the reason is shown, and for several FILEs a total. Sizes count
    the chosen columns in the Parquet file.

    \b
    Examples:
      underlay pm prune trips.pm --where "pickup >= '2024-01-01' and zone = 'JFK'"
      underlay pm prune sidecars/*.pm --where "fare between 10 and 20" --columns fare,tip --json
    """
    from underlay.cli.pm.prune import prune_sidecars

    prune_sidecars(file, where, columns=columns, parquet=parquet, version_size=version_size, json=json)

"""Arguments and options that commands on lakes and tables share."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.formats import RowsAs

# Arguments are hidden from the list of options: the usage line names them, the text above the list explains them.
TableName = Annotated[str, typer.Argument(metavar="DATASET.TABLE", hidden=True, show_default=False)]
LakeUrl = Annotated[
    str | None,
    typer.Option(
        "--lake",
        metavar="URL",
        help="The lake: a directory, or a URL such as s3://bucket/lake. Default: UNDERLAY_LAKE, else the nearest"
        " underlay.toml, in this directory or above it.",
    ),
]
StoreOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="An option of the store, such as endpoint=http://localhost:9000; repeatable. Default: those in"
        " underlay.toml.",
    ),
]
NullTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="Unquoted text that means null in CSV, besides an empty field; repeatable. Default: none.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line. Default: text for people.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it. Default: only print what would be done.")]
VersionNumber = Annotated[
    int | None, typer.Option("--version", metavar="N", help="Version N of the table. Default: the newest.")
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="The table as it was at a date or time, such as 2026-01-31T12:00+01:00; UTC without a zone. Default: now.",
    ),
]
Tag = Annotated[
    str | None, typer.Option("--tag", metavar="NAME", help="The version with this tag. Default: the newest.")
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="FILTER",
        help="Comparisons of a column with a value (=, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS [NOT] NULL), joined by"
        " AND, OR and NOT. Times without a zone are UTC. Default: all rows.",
    ),
]
ColumnNames = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Columns, separated by commas; quote a name with a comma in it. Default: all."),
]
Format = Annotated[
    RowsAs | None,
    typer.Option(
        "--format",
        show_default=False,
        help="A table for people, one line per value (vertical), Markdown, CSV (bytes in hexadecimal, nested values in"
        " JSON), a JSON array, JSON lines (ndjson), Parquet, or Arrow IPC. Default: by the name of --output, else"
        " table.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to a file, which appears when it is complete and replaces an older one. Default: stdout.",
    ),
]

NoHive = Annotated[
    bool,
    typer.Option("--no-hive", help="Take no columns from folders such as year=2024. Default: they give columns."),
]
SourceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--source-option",
        metavar="KEY=VALUE",
        help="An option of the store of the sources; repeatable. Default: those of the lake, for the same scheme.",
    ),
]

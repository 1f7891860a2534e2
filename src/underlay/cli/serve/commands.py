"""Declares `serve` and `token`; what they do is imported when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, StoreOptions

TokensFile = Annotated[
    str | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="The file of tokens, which holds hashes only. Default: UNDERLAY_TOKENS, else tokens.json in the user's"
        " state directory.",
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option("--read", metavar="NAME", help="A dataset, a table or *; repeatable. Default: none."),
]
WriteNames = Annotated[
    list[str] | None,
    typer.Option(
        "--write", metavar="NAME", help="The same for changes, which include reading; repeatable. Default: none."
    ),
]
token = typer.Typer(
    help="Create, list and revoke the tokens of a server.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def serve(
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="The address to listen on. Addresses other than loopback need --tokens."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 is any free one.")] = 8080,
    flight_port: Annotated[
        int | None,
        typer.Option(
            "--flight-port", min=0, max=65535, help="Serve Flight SQL on this port too; 0 is any free one. Default: no."
        ),
    ] = None,
    flight: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT", help="The same on another address than --host. Default: that of --flight-port."
        ),
    ] = None,
    writable: Annotated[
        bool, typer.Option("--writable", help="Allow statements that change tables. Default: reads only.")
    ] = False,
    tokens: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='Who may use it: the file of "underlay token". It is read again when it changes. Default: anybody on'
            " this machine may read.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="auto|duckdb|spark",
            help="What runs queries. auto: DuckDB, or Spark where a plan reads a lot of data. Default: auto where"
            " PySpark and a Java are installed, else duckdb.",
        ),
    ] = None,
    master: Annotated[
        str, typer.Option(metavar="URL", help="Where Spark runs, such as spark://host:7077.")
    ] = "local[*]",
    spark_from: Annotated[
        str, typer.Option(metavar="SIZE", help="With auto, Spark runs queries that read at least this much.")
    ] = "8GiB",
    spark_memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory of Spark's driver.")] = "2GiB",
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Statements that run at once, each in its own process.")
    ] = 4,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory of each worker's engine.")] = "1GiB",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="Timeout of statements that set none.")
    ] = 60.0,
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The URL by which clients reach it, such as https://sql.example. Default: its address."
        ),
    ] = None,
    root_path: Annotated[str, typer.Option(metavar="PATH", help="The path that a proxy puts before it.")] = "",
    spool: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Where results are kept. Default: a folder of the user's in the temporary directory."
        ),
    ] = None,
    audit: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Append a line of JSON for each statement. Default: no such log."),
    ] = None,
    log_format: Annotated[
        str,
        typer.Option(
            metavar="text|json",
            help="What goes to stderr. text: warnings and errors. json: a JSON object a line, for each request too.",
        ),
    ] = "text",
    certificate: Annotated[
        str | None, typer.Option(metavar="FILE", help="TLS: the certificate, as PEM. Default: no TLS.")
    ] = None,
    certificate_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="TLS: its key. Default: in the same file.")
    ] = None,
    hot: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            envvar="UNDERLAY_HOT",
            show_envvar=False,
            help="The directory of hot partitions on this machine. Queries see their rows, and with --writable the"
            " server takes rows for them. Default: UNDERLAY_HOT, else that of underlay.toml.",
        ),
    ] = None,
    hot_dataset: Annotated[
        str, typer.Option(metavar="NAME", help="The dataset of measurements that come without a bucket or database.")
    ] = "hot",
    hot_new_columns: Annotated[
        str, typer.Option(metavar="add|ignore|error", help="What to do with columns that a hot table lacks.")
    ] = "add",
    lake: LakeUrl = None,
    option: StoreOptions = None,
) -> None:
    """Answer SQL over HTTP until it is stopped.

    Statements run on DuckDB or Spark, in processes of their own with limits, and reach the tables of the lake that
    their token may read, and nothing else. GET /openapi.json describes the endpoints. SIGTERM and Ctrl-C stop it when
    the running statements have ended. With --flight-port, ADBC and JDBC clients reach the same statements by Flight
    SQL.

    With --hot and --writable, POST /write and /api/v2/write take rows in the line protocol of InfluxDB and QuestDB, and
    answer when they are committed.

    \b
    Examples:
      underlay serve --flight-port 31337
      underlay serve --engine spark --master spark://host:7077
      underlay serve --host 0.0.0.0 --public-url http://sql.example:8080 --tokens tokens.json --writable
      underlay serve --hot /data/hot --tokens tokens.json --writable
    """
    from underlay.cli.serve.run import ServeChoice, serve_lake

    serve_lake(
        ServeChoice(
            host=host,
            port=port,
            flight_port=flight_port,
            flight=flight,
            is_writable=writable,
            tokens=tokens,
            engine=engine,
            master=master,
            spark_from=spark_from,
            spark_memory=spark_memory,
            workers=workers,
            memory=memory,
            timeout_seconds=timeout,
            public_url=public_url,
            root_path=root_path,
            spool=spool,
            audit=audit,
            log_format=log_format,
            certificate=certificate,
            certificate_key=certificate_key,
            hot=hot,
            hot_dataset=hot_dataset,
            hot_new_columns=hot_new_columns,
        ),
        lake,
        option,
    )


@token.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True, show_default=False)],
    read: Names = None,
    write: WriteNames = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="See and stop the statements of all tokens. Default: only its own.")
    ] = False,
    expires: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="The token expires after this time, such as 90d or 12h. Default: never."),
    ] = None,
    tokens: TokensFile = None,
    json: Json = False,
) -> None:
    """Create a token and print it, once: the file keeps only its hash.

    \b
    Examples:
      underlay token create ada --read taxi --expires 90d
      underlay token create loader --read "*" --write shop.orders
    """
    from underlay.cli.serve.tokens import create_token

    create_token(tokens, name, read=read or (), write=write or (), admin=admin, expires=expires, json=json)


@token.command("list")
def list_(tokens: TokensFile = None, json: Json = False) -> None:
    """List tokens: their names, rights and times. Nothing here can be used as a token.

    \b
    Examples:
      underlay token list
    """
    from underlay.cli.serve.tokens import list_tokens

    list_tokens(tokens, json=json)


@token.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True, show_default=False)],
    tokens: TokensFile = None,
) -> None:
    """Revoke a token, by its name or id. Servers refuse it from their next request on.

    \b
    Examples:
      underlay token revoke ada
    """
    from underlay.cli.serve.tokens import revoke_token

    revoke_token(tokens, name)

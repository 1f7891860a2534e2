"""Runs `underlay serve`."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from underlay.cli.common.lake_choice import choose_lake, open_existing_lake, show_place
from underlay.cli.common.output import say
from underlay.cli.common.text_options import read_size
from underlay.errors import InvalidRequest, Unavailable, Unsupported
from underlay.index.catalog import split_name
from underlay.ingest.rows.reading import NewColumnsPolicy
from underlay.spark.start.installed import has_pyspark
from underlay.spark.start.java_home import cache_folder, find_java_home

if TYPE_CHECKING:
    from underlay.server.common.hot_settings import HotSettings

_ENGINES = ("auto", "duckdb", "spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeChoice:
    """The options of the command."""

    host: str
    port: int
    flight_port: int | None
    flight: str | None
    is_writable: bool
    tokens: str | None
    engine: str | None
    master: str
    spark_from: str
    spark_memory: str
    workers: int
    memory: str
    timeout_seconds: float
    public_url: str | None
    root_path: str
    spool: str | None
    audit: str | None
    log_format: str
    certificate: str | None
    certificate_key: str | None
    hot: str | None
    hot_dataset: str
    hot_new_columns: str


def serve_lake(chosen: ServeChoice, lake: str | None, option: Sequence[str] | None) -> None:
    """Serve the lake until the process is told to stop. Raises NotFound without a lake."""
    try:
        from underlay.server.common.log_lines import SERVER
        from underlay.server.common.settings import ServerLimits, ServerSettings
        from underlay.server.serve import allow_connections, bind, make_server
    except ModuleNotFoundError as error:
        raise Unsupported(
            f"the server needs a library that is not installed: {error.name}",
            hint='Run pip install "underlay[server]".',
        ) from None
    with open_existing_lake(lake, option) as known:
        url = known.url  # workers run in folders of their own, where a relative path would lead elsewhere
    where = choose_lake(lake, option)
    engine, said = choose_engine(chosen.engine, chosen.master, why_no_spark())
    settings = ServerSettings(
        lake=url,
        options=where.options,
        registry=where.registry,
        host=chosen.host,
        port=chosen.port,
        flight=flight_address(chosen.host, chosen.flight_port, chosen.flight),
        is_writable=chosen.is_writable,
        tokens=None if chosen.tokens is None else Path(chosen.tokens),
        engine=engine,
        master=chosen.master,
        public_url=chosen.public_url,
        root_path=chosen.root_path,
        # one for each user: another user's folder could be closed to us, or changed under us
        spool=Path(chosen.spool or Path(tempfile.gettempdir()) / f"underlay-spool-{os.getuid()}"),
        log_format=chosen.log_format,
        audit=None if chosen.audit is None else Path(chosen.audit),
        certificate=None if chosen.certificate is None else Path(chosen.certificate),
        certificate_key=None if chosen.certificate_key is None else Path(chosen.certificate_key),
        limits=ServerLimits(
            running=chosen.workers,
            memory_bytes=read_size(chosen.memory),
            spark_from_bytes=read_size(chosen.spark_from),
            spark_memory_bytes=read_size(chosen.spark_memory),
            statement_seconds=chosen.timeout_seconds,
        ),
        hot=choose_hot(chosen, where.hot),
    )
    server = make_server(settings)
    allow_connections(settings)
    listening = bind(settings)
    host, port = listening.getsockname()[:2]
    scheme = "http" if chosen.certificate is None else "https"
    address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    if chosen.log_format == "json":
        fields = {"url": address, "lake": show_place(url), "engine": said}
        logging.getLogger(SERVER).info("serving", extra={"fields": fields})
    else:
        say(f"Serving {show_place(url)} on {address}, Ctrl-C stops it.")
        say(said)

    def tell_flight(number: int) -> None:
        """Said when it listens, which is later: its workers are started before."""
        name = settings.flight[0] if settings.flight is not None else ""
        kind = "grpc" if chosen.certificate is None else "grpc+tls"
        flight = f"{kind}://{f'[{name}]' if ':' in name else name}:{number}"
        if chosen.log_format == "json":
            logging.getLogger(SERVER).info("serving Flight SQL", extra={"fields": {"url": flight}})
        else:
            say(f"Flight SQL on {flight}.")

    server.config.app.state.on_flight = tell_flight  # type: ignore[union-attr]  # our application
    server.run([listening])
    if getattr(server.config.app.state, "is_flight_stuck", False):  # type: ignore[union-attr]  # our application
        say("A client of Flight SQL does not read: its connection is cut.")
        os._exit(0)


def flight_address(host: str, port: int | None, text: str | None) -> tuple[str, int] | None:
    """Where Flight SQL is served; None for nowhere. Raises InvalidRequest."""
    if text is not None:
        if port is not None:
            raise InvalidRequest("--flight and --flight-port say the same", hint="Give one of them.")
        name, _, number = text.rpartition(":")
        if not name or not (number.isascii() and number.isdigit() and int(number) < 1 << 16):
            raise InvalidRequest("not an address to listen on", expected="--flight ADDRESS:PORT", found=text)
        host, port = name.strip("[]"), int(number)
    if port is None:
        return None
    return host, port


def why_no_spark() -> str | None:
    """Why statements cannot run on Spark here; None when they can. Starts Java, to see whether it works."""
    if not has_pyspark():
        return 'PySpark is not installed (pip install "underlay[spark]")'
    try:
        find_java_home(os.environ, cache_folder(os.environ))
    except Unavailable as error:
        return str(error)
    return None


def choose_engine(asked: str | None, master: str, why_not: str | None) -> tuple[str, str]:
    """The engine of a server, and what is said of it. Raises InvalidRequest, and Unsupported for Spark without one."""
    if asked not in (None, *_ENGINES):
        raise InvalidRequest("unknown --engine", expected=", ".join(_ENGINES), found=asked)
    if asked in ("auto", "spark") and why_not is not None:
        raise Unsupported(f"there is no Spark here: {why_not}", hint="Give --engine duckdb.")
    engine = asked or ("duckdb" if why_not is not None else "auto")
    if engine == "spark":
        return engine, f"Queries run on Spark ({master}), which starts with the first one."
    if engine == "auto":
        return engine, f"Queries run on DuckDB; on Spark ({master}) those that ask for it, or read a lot of data."
    return engine, "Queries run on DuckDB." if asked else f"Queries run on DuckDB: {why_not}."


def choose_hot(chosen: ServeChoice, known: str | None) -> HotSettings | None:
    """The treatment of hot partitions, by default those that underlay.toml names; None without a directory. Raises
    InvalidRequest."""
    from underlay.server.common.hot_settings import HotSettings

    policies = get_args(NewColumnsPolicy)
    if chosen.hot_new_columns not in policies:
        raise InvalidRequest("unknown policy", expected=", ".join(policies), found=chosen.hot_new_columns)
    folder = chosen.hot or known
    if folder is None:
        return None
    split_name(f"{chosen.hot_dataset}.table")
    policy = cast("NewColumnsPolicy", chosen.hot_new_columns)
    return HotSettings(folder=Path(folder).absolute(), dataset=chosen.hot_dataset, new_columns=policy)

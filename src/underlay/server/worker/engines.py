"""Which engine runs a statement, and why."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from underlay.errors import UnderlayError
from underlay.local.sql.run import is_change
from underlay.local.text.words import words_of
from underlay.server.common.problem import Problem
from underlay.server.worker.job import StatementJob

_QUERIES = frozenset(("select", "with", "from", "values", "table", "("))


class EngineName(Enum):
    """An engine. `auto`: the server chooses."""

    AUTO = "auto"
    DUCKDB = "duckdb"
    SPARK = "spark"


class EngineChoice(NamedTuple):
    """What runs a statement."""

    engine: EngineName
    reason: str


def choose_engine(job: StatementJob, of_server: EngineName) -> EngineChoice:
    """The engine of a statement; `of_server` is what the server was started with. Raises Problem for one that it does
    not have."""
    asked = EngineName(job.engine)
    if asked is EngineName.SPARK and of_server is EngineName.DUCKDB:
        raise Problem(
            status=400, code="no_engine", detail="this server has no Spark", hint="Leave engine out, or ask for duckdb."
        )
    if asked is EngineName.DUCKDB:
        return EngineChoice(EngineName.DUCKDB, "asked for")
    if of_server is EngineName.DUCKDB:
        return EngineChoice(EngineName.DUCKDB, "this server has no other engine")
    if _changes(job.sql):
        return EngineChoice(EngineName.DUCKDB, "changes do not run on Spark")
    if asked is EngineName.SPARK:
        return EngineChoice(EngineName.SPARK, "asked for")
    if of_server is EngineName.SPARK:
        if _first_word(job.sql) in _QUERIES:
            return EngineChoice(EngineName.SPARK, "this server runs queries on Spark")
        return EngineChoice(EngineName.DUCKDB, "Spark is asked queries only")
    return EngineChoice(EngineName.DUCKDB, "chosen by the server")


def _changes(text: str) -> bool:
    try:
        return is_change(text)
    except UnderlayError:  # no text of DuckDB, perhaps one of Spark
        return False


def _first_word(text: str) -> str:
    try:
        return next((word.text.lower() for word in words_of(text)), "")
    except UnderlayError:
        return ""

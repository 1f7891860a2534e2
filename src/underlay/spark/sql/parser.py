"""A session's parser: Python sees each statement first, then Spark's own parser.

`spark.sql` passes every statement to the session's parser. We put a Python object in its place: it brings the names of
a lake's tables up to date, and runs statements that change them (see `statements`). Everything else is passed on
unchanged. Sessions that are made from the same one get such a parser through Spark's extensions, which are called for
each new session.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from underlay.runtime.locks import ProcessLock
from underlay.spark.catalog.mentioned import follow_name, follow_text
from underlay.spark.catalog.session_catalog import Names
from underlay.spark.jvm.gateway import JavaObject, call, call_text, gateway_of, java_session
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.sql.nodes import NamedRelation
from underlay.spark.sql.statements import may_change, run_change
from underlay.spark.sql.targets import StatementTarget, find_target
from underlay.spark.sql.versions import asks_for_history, history, names_versions, with_versions
from underlay.spark.sql.writers import name_for_writer

_installing = ProcessLock()
_sessions: set[str] = set()
_applications: set[str] = set()


class LakeParser:
    """Spark's `ParserInterface` for one session. `spark_parser` does the parsing."""

    def __init__(self, names: Names, session: SparkSession, spark_parser: JavaObject) -> None:
        self._names = names
        self._gateway = gateway_of(session)
        self._session = session
        self._parser = spark_parser

    def parsePlan(self, text: str) -> JavaObject:  # noqa: N802  # Spark's name
        """Parse a statement. Spark before 4.3 binds its parameters later."""
        return self._statement("parsePlan", text)

    def parsePlanWithParameters(self, text: str, parameters: JavaObject) -> JavaObject:  # noqa: N802  # Spark's name
        """Parse a statement with the values of its parameters."""
        return self._statement("parsePlanWithParameters", text, parameters)

    def parseMultipartIdentifier(self, text: str) -> JavaObject:  # noqa: N802  # Spark's name
        """Parse a single name: from `spark.table`, `spark.catalog`, and writers, which get a name of our catalog."""
        with self._gateway.raising_errors():
            found = call(self._parser, "parseMultipartIdentifier", text)
            parts = _parts(found)
            follow_name(self._names, parts)
            return name_for_writer(self._session, self._names, parts) or found

    def parseTemporalTableIdentifier(self, text: str) -> JavaObject:  # noqa: N802  # Spark's name
        """Parse the argument of `spark.table` since Spark 4.3: a name that may have a version."""
        with self._gateway.raising_errors():
            found = call(self._parser, "parseTemporalTableIdentifier", text)
            follow_name(self._names, _parts(call(found, "nameParts")), is_table=True)
            return found

    def __getattr__(self, method: str) -> object:
        if method.startswith("_"):
            raise AttributeError(method)
        return partial(self._pass, method)

    def _pass(self, method: str, *arguments: object) -> JavaObject:
        with self._gateway.raising_errors():
            return call(self._parser, method, *arguments)

    def _statement(self, method: str, text: str, *arguments: object) -> JavaObject:
        with self._gateway.raising_errors():
            follow_text(self._names, text)
            if (asked := asks_for_history(text)) is not None:
                target = self._target(asked[0])
                if target is not None:
                    return history(self._session, target, asked[1])
            plan = call(self._parser, method, text, *arguments)
            if names_versions(text):
                plan = with_versions(self._session, self._names, plan)
            return run_change(self._session, self._names, plan) if may_change(text) else plan

    def _target(self, name: str) -> StatementTarget | None:
        parts = _parts(call(self._parser, "parseMultipartIdentifier", name))
        return find_target(self._session, self._names, NamedRelation(parts=parts, name=tuple(parts)))

    def toString(self) -> str:  # noqa: N802  # Java's name
        """What Java prints."""
        return f"Underlay, before {call_text(self._parser, 'toString')}"

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """A number that stays the same."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """No other object is this one."""
        return other is self

    class Java:
        """What py4j makes a proxy for."""

        implements = ("org.apache.spark.sql.catalyst.parser.ParserInterface",)


class ParserMaker:
    """Makes the parser of each session that Spark derives from another one. Called from the JVM."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def apply(self, session: JavaObject, spark_parser: JavaObject) -> LakeParser:
        """A parser for a new session."""
        made = SparkSession(self._names.spark.sparkContext, session)
        _sessions.add(call_text(session, "sessionUUID"))
        return LakeParser(self._names, made, spark_parser)

    def toString(self) -> str:  # noqa: N802  # Java's name
        """What Java prints."""
        return "Underlay's parsers"

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """A number that stays the same."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """No other object is this one."""
        return other is self

    class Java:
        """What py4j makes a proxy for."""

        implements = ("scala.Function2",)


def pass_statements(spark: SparkSession, names: Names) -> None:
    """From now on, have all statements of a session, and of sessions derived from it, pass through Python."""
    session, application = java_session(spark), spark.sparkContext.applicationId
    with _installing:
        if application not in _applications:
            call(call(session, "extensions"), "injectParser", ParserMaker(names))
            _applications.add(application)
        if call_text(session, "sessionUUID") in _sessions:
            return
        state = call(session, "sessionState")  # creates it if it did not exist: then with our parser
        if call_text(session, "sessionUUID") in _sessions:
            return
        field = call(call(state, "getClass"), "getDeclaredField", "sqlParser")
        call(field, "setAccessible", True)
        call(field, "set", state, LakeParser(names, spark, call(state, "sqlParser")))
        _sessions.add(call_text(session, "sessionUUID"))


def _parts(found: JavaObject) -> list[str]:
    return [str(part) for part in items_of(found)]

"""Spark's refusals to do something with a table by its name, with what to call instead.

Spark says that the name is a view, which helps nobody who wanted to add rows, or to read older ones. There is no place
in Spark where a session may put words of its own; so what PySpark makes of the JVM's errors is looked at, and those
that are refusals of a name that a lake has get a hint. Everything else passes as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.errors.exceptions import captured

_NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND"
_NOT_EMPTY = "SCHEMA_NOT_EMPTY"
_NO_STREAM = "_LEGACY_ERROR_TEMP_1018"
HINT = (
    "{what} a table of a lake of Underlay, which Spark reads and does not write. Call underlay.spark.append, overwrite "
    "or write(frame, name), or lake.drop_table(name)."
)
TRAVEL_HINT = (
    '{what} a table of a lake of Underlay. Read an older version by underlay.spark.table(spark, lake, "name@v7"), or '
    'in SQL after underlay.spark.register_version(spark, lake, "name@v7").'
)
DATASET_HINT = (
    "{what} a dataset of a lake of Underlay, which Spark reads and does not write. Call lake.drop_table(name) for its "
    "tables."
)
STREAM_HINT = '{what} a table of a lake of Underlay. Read it by spark.readStream.format("underlay").load(name).'
_ANY = "This may be"
_HINTS = {
    "UNSUPPORTED_FEATURE.TIME_TRAVEL": TRAVEL_HINT,
    _NOT_FOUND: TRAVEL_HINT,
    _NOT_EMPTY: DATASET_HINT,
    _NO_STREAM: STREAM_HINT,
}
"""What helps against refusals of other things than changes of a table."""
_OF_NAMES = (
    "EXPECT_TABLE_NOT_VIEW",
    "LOCATION_ALREADY_EXISTS",
    _NOT_EMPTY,
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "UNSUPPORTED_FEATURE.TABLE_OPERATION",
    "UNSUPPORTED_FEATURE.TIME_TRAVEL",
    "VIEW_WRITE_NOT_ALLOWED",
    "_LEGACY_ERROR_TEMP_1011",
)
"""Conditions whose message has the name."""
_OF_VIEWS = (
    "UNSUPPORTED_FEATURE.ANALYZE_VIEW",
    "WRONG_COMMAND_FOR_OBJECT_TYPE",
    "_LEGACY_ERROR_TEMP_1158",
    "_LEGACY_ERROR_TEMP_2096",
    _NO_STREAM,
)
"""Conditions that speak of a view without its name, or without quotes around it. 2096 is of UPDATE and MERGE, of any
table, in Spark 4.0."""
_SPARKS_OWN_FAULTS = ("unsupportedTableOperationError", "does not allow create table as select")
"""Where Spark fails while it words its refusal: DELETE, and saveAsTable with the data source."""
_NAME = re.compile(r"`((?:[^`]|``)*)`(?:\.`((?:[^`]|``)*)`)?(?:\.`((?:[^`]|``)*)`)?")

Knows = Callable[[str], bool]
"""Whether a name, or a part of it, is that of a lake's table."""


@cache
def hint_refusals(knows: Knows) -> None:
    """Have refusals of these names say what to call instead, from now on, in this process."""
    convert = captured.convert_exception

    def convert_and_hint(e: Py4JJavaError) -> captured.CapturedException:  # the parameter's name is PySpark's
        converted = convert(e)
        what = _refused(converted, knows)
        if what is None:
            return converted
        hint = _HINTS.get(converted.getCondition() or "", HINT)
        text = f"{converted._desc}\n{hint.format(what=what)}"
        if not isinstance(converted, captured.UnknownException):
            converted._desc = text
            return converted
        return captured.AnalysisException(desc=text, stackTrace=converted._stackTrace)

    captured.convert_exception = convert_and_hint


def _refused(error: PySparkException, knows: Knows) -> str | None:
    """What Spark refused to write to, `_ANY` when it does not tell; None for any other error."""
    if not isinstance(error, captured.CapturedException):
        return None
    if isinstance(error, captured.UnknownException):
        is_fault = any(fault in f"{error._desc} {error._stackTrace}" for fault in _SPARKS_OWN_FAULTS)
        return _ANY if is_fault else None
    condition = error.getCondition() or ""
    if condition.startswith(_OF_VIEWS):
        return _ANY
    found = (".".join(_unquoted(parts)) for parts in _NAME.findall(error._desc))
    if condition == _NOT_FOUND:
        found = (name for name, mark, _ in (name.partition("@") for name in found) if mark)
    elif not condition.startswith(_OF_NAMES):
        return None
    return next((f"{name} is" for name in found if knows(name)), None)


def _unquoted(parts: tuple[str, ...]) -> list[str]:
    """The last two parts of a name, without the catalog's."""
    return [part.replace("``", "`") for part in parts if part][-2:]

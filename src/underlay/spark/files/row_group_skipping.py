"""Decides where Spark may skip row groups of our files by their statistics, and where it would lose rows.

| columns or files | why Spark would lose rows |
|---|---|
| registered files | their statistics may hide NaN or -0.0, or be wrong |
| instants in milliseconds | Spark rounds the value that such a column is compared with |
| a column `a.b` beside a field `b` of a struct `a` | both have one name in Spark's pushed filters |
| dates and times before 1900 | Spark converts the value that they are compared with to java.sql.Date or Timestamp |

java.sql.Date has no 5th to 14th of October 1582, and no day that the JVM's zone skipped; java.sql.Timestamp confuses
times before 1900 in zones with a history. Rows between the intended value and the converted one would be missing.
`spark.sql.datetime.java8API.enabled` avoids this, but sessions share relations and may change the setting under a
frame, so the contents of the version decide, not the session (decision 20).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from pyspark.sql.types import TimestampType

from underlay.prune.predicates.instant import DAY_NS, Instant
from underlay.prune.predicates.predicate import Compare, Op, Or, Predicate
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Field, StructOf, TypeKind
from underlay.spark.files.file_groups import Group
from underlay.spark.files.read_schema import ReadColumns
from underlay.spark.files.version_files import VersionFiles
from underlay.spark.jvm.gateway import Gateway, call_number

_FIRST_SAFE: dict[TypeKind, date | Instant] = {
    TypeKind.DATE: date(1900, 1, 4),
    TypeKind.TIMESTAMP: Instant((date(1900, 1, 4) - date(1970, 1, 1)).days * DAY_NS),
}
"""Spark changes no value from 1900 on. A few more days, since midnight in a zone is up to a day away from that in
UTC."""
_DATE_LINE_MS = 12 * 3_600_000
"""Zones that skipped a day since 1900 crossed the date line from east to west, and are this far ahead of UTC today."""


def may_skip_row_groups(gateway: Gateway, version: VersionFiles, group: Group) -> bool:
    """Whether Spark may skip row groups in the files of a group. Fetches the statistics of dates that may be old."""
    schema = version.snapshot.schema
    if group.is_registered or has_twins(schema):
        return False
    if group.reading is not None and may_have_milliseconds(group.reading, schema):
        return False
    return not _may_have_old_dates(gateway, version, group)


def may_have_milliseconds(reading: ReadColumns, schema: TableSchema) -> bool:
    """Whether files that are read this way may hold instants in milliseconds. Older files may, if they hold
    instants.
    """
    if reading.is_by_name:
        types = [leaf.type for leaf in schema.leaves]
        return any(
            type.kind is TypeKind.TIMESTAMP and type.zone is not None and type.unit in ("ms", "s") for type in types
        )
    return TimestampType().simpleString() in re.findall(r"\w+", reading.schema.simpleString())


def has_twins(schema: TableSchema) -> bool:
    """Whether Spark's filters confuse two columns: it joins the names on the path to a struct's field with dots."""
    paths = list(_dotted(schema.fields, ""))
    return len(set(paths)) < len(paths)


def _dotted(fields: tuple[Field, ...], above: str) -> Iterator[str]:
    for field in fields:
        path = f"{above}{field.name}".lower()
        yield path
        if isinstance(field.type, StructOf):
            yield from _dotted(field.type.fields, f"{path}.")


def _may_have_old_dates(gateway: Gateway, version: VersionFiles, group: Group) -> bool:
    # Spark skips nothing by what is in lists.
    leaves = [leaf for leaf in version.snapshot.schema.leaves if not leaf.is_repeated]
    if any(leaf.type.kind is TypeKind.DATE for leaf in leaves) and _is_beyond_the_date_line(gateway):
        return True
    predicate = old_dates(leaves)
    return predicate is not None and bool(version.choose(group, predicate).paths)


def old_dates(leaves: list[LeafColumn]) -> Predicate | None:
    """A predicate for rows with a date or time that Spark may confuse with another; None when no column can have such
    values.

    Times without a zone are safe, but files older than a change of columns may hold dates instead.
    """
    parts = tuple(
        Compare(leaf.path, Op.LT, _FIRST_SAFE[leaf.type.kind]) for leaf in leaves if leaf.type.kind in _FIRST_SAFE
    )
    return Or(parts) if parts else None


def _is_beyond_the_date_line(gateway: Gateway) -> bool:
    return call_number(gateway.static("java.util.TimeZone", "getDefault"), "getRawOffset") >= _DATE_LINE_MS

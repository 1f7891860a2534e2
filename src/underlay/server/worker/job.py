"""A worker's jobs, as values that travel as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from underlay.errors import InvalidRequest
from underlay.server.access.rights import Rights
from underlay.server.kept.bins import BinKind, BinsRequest
from underlay.server.worker.messages import Message

_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_ ]{0,40}(\(\s*\d{1,3}\s*(,\s*\d{1,3}\s*)?\))?(\[\]){0,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The format of the rows. `shape` is arrays or objects."""

    format: str = "json"
    compression: str | None = None
    shape: str = "arrays"
    integers_as_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementJob:
    """A statement of one caller. Its rows go to the file `spool` if that is set, else they are sent as `output` says.

    `salt` is what an ETag depends on besides the statement and the versions. An answer whose ETag is `if_none_match` is
    not sent.
    """

    sql: str
    parameters: Mapping[str, object] | Sequence[object] | None = None
    as_of: str | None = None
    rights: Rights
    is_writable: bool = False
    token: str | None = None
    row_limit: int | None = None
    byte_limit: int | None = None
    output: Output = field(default_factory=Output)
    spool: str | None = None
    if_none_match: str | None = None
    salt: str = ""
    caller: str = ""
    """The id of the caller's token."""
    engine: str = "auto"
    """What was asked for: auto, duckdb or spark."""
    are_nulls_last: bool = False
    """Spark sorts nulls last, as DuckDB does, in a query of DuckDB's SQL."""

    def as_message(self) -> Message:
        """As JSON."""
        return {"type": "statement", **asdict(self)}

    @classmethod
    def from_message(cls, message: Message) -> StatementJob:
        """What `as_message` wrote."""
        return cls(**_values(message))

    @property
    def moment(self) -> datetime | None:
        """The time that tables are read as of."""
        return None if self.as_of is None else datetime.fromisoformat(self.as_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookJob:
    """A look at metadata: `what` is plan, blocks, scan (the block map of a kept statement's scan), columns, versions,
    files, sources, diff, health, jobs, runs or completion.

    With `scan` a plan is the block map of that scan. `bins` counts neighbouring blocks together; `most` is of versions
    and runs.
    """

    what: str
    rights: Rights
    table: str | None = None
    version: int | None = None
    as_of: str | None = None
    since: int | None = None
    sql: str | None = None
    parameters: Mapping[str, object] | Sequence[object] | None = None
    where: str | None = None
    columns: Sequence[str] | None = None
    column: str | None = None
    is_sorted: bool = False
    bins: int | None = None
    offset: int = 0
    limit: int | None = None
    most: int | None = None
    spool: str | None = None
    scan: int | None = None
    output: Output = field(default_factory=Output)
    if_none_match: str | None = None

    def as_message(self) -> Message:
        """As JSON."""
        return {"type": "look", **asdict(self)}

    @classmethod
    def from_message(cls, message: Message) -> LookJob:
        """What `as_message` wrote."""
        return cls(**_values(message))

    @property
    def moment(self) -> datetime | None:
        """The time that tables are read as of."""
        return None if self.as_of is None else datetime.fromisoformat(self.as_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJob:
    """Rows of a kept result, from `offset` on, sorted if `order_by` names a column."""

    spool: str
    offset: int = 0
    limit: int | None = None
    order_by: str | None = None
    is_descending: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)
    output: Output = field(default_factory=Output)

    def as_message(self) -> Message:
        """As JSON."""
        return {"type": "window", **asdict(self)}

    @classmethod
    def from_message(cls, message: Message) -> WindowJob:
        """What `as_message` wrote."""
        return cls(**_values(message))


@dataclass(frozen=True, slots=True, kw_only=True)
class BinsJob:
    """The rows of a kept result, counted for a chart."""

    spool: str
    asked: BinsRequest
    output: Output = field(default_factory=Output)

    def as_message(self) -> Message:
        """As JSON."""
        return {"type": "bins", **asdict(self)}

    @classmethod
    def from_message(cls, message: Message) -> BinsJob:
        """What `as_message` wrote."""
        known = _values(message)
        asked = known["asked"]
        known["asked"] = BinsRequest(**{**asked, "kind": BinKind(asked["kind"]), "y": tuple(asked["y"])})
        return cls(**known)


def _values(message: Message) -> dict[str, Any]:  # Any: of each field's type
    """The fields of a job."""
    known = {name: value for name, value in message.items() if name != "type"}
    known["output"] = Output(**known["output"])
    if "rights" in known:
        rights = known["rights"]
        known["rights"] = Rights(read=tuple(rights["read"]), write=tuple(rights["write"]), is_admin=rights["is_admin"])
    return known


def scans_path(spool: str) -> str:
    """The file for the scans of the statement whose rows are kept in `spool`."""
    return f"{spool}.scans"


def order_path(spool: str, column: int, *, is_descending: bool) -> str:
    """The file for the order of the rows in `spool` by a column."""
    return f"{spool}.by-{column}-{'descending' if is_descending else 'ascending'}"


def check_type(name: object) -> str:
    """Check a parameter's type, such as decimal(9,2), for use in a cast. Raises InvalidRequest for any other text."""
    if not isinstance(name, str) or _TYPE.fullmatch(name) is None:
        raise InvalidRequest("not the name of a type", expected="such as decimal(9,2)", found=repr(name)[:80])
    return name

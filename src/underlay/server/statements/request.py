"""Reads and checks a client's request: the statement, its parameters, and how to run it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from underlay.errors import InvalidRequest
from underlay.server.common.settings import ServerLimits

_KNOWN = frozenset((
    "sql", "parameters", "engine", "as_of", "wait", "limit", "row_limit", "timeout", "shape", "integers", "tags",
))  # fmt: skip
_ENGINES = ("auto", "duckdb", "spark")
PLAN_ONLY = ("table", "where", "columns", "version", "scan", "column", "order", "bins")
"""Further fields of a request for a plan."""
_SHAPES = ("arrays", "objects")
_INTEGERS = ("numbers", "string")
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_MOST_TAGS = 20
_MOST_NESTED = 100
_PAGE_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRequest:
    """A statement as the client requested it."""

    sql: str
    engine: str = "auto"
    parameters: Mapping[str, object] | Sequence[object] | None = None
    as_of: str | None = None
    wait_seconds: float = 10.0
    page_rows: int = _PAGE_ROWS
    row_limit: int | None = None
    timeout_seconds: float = 60.0
    shape: str = "arrays"
    integers_as_text: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


def read_json(body: bytes) -> dict[str, Any]:  # Any: JSON
    """A JSON object. Raises InvalidRequest, also for NaN and Infinity, which are not JSON."""
    try:
        text = body.decode()
        found = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_with_each_name_once
        )
        if _HALF_PAIR.search(text):
            json.dumps(found, ensure_ascii=False).encode()  # a lone surrogate is not text that anything can store
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidRequest("the body is not a JSON object", hint='Write {"sql": "…"}.')
    return found


def read_request(known: Mapping[str, Any], limits: ServerLimits) -> StatementRequest:  # Any: JSON
    """The request that an object describes. Raises InvalidRequest."""
    unknown = sorted(set(known) - _KNOWN)
    if unknown:
        raise InvalidRequest("unknown member", expected=", ".join(sorted(_KNOWN)), found=", ".join(unknown)[:200])
    sql = known.get("sql")
    if not isinstance(sql, str):
        raise InvalidRequest("sql must be a string", hint='Write {"sql": "select 1"}.')
    return StatementRequest(
        sql=check_text(sql),
        engine=_one_of(known, "engine", _ENGINES),
        parameters=_parameters(known.get("parameters")),
        as_of=read_moment(known.get("as_of")),
        wait_seconds=_number(known, "wait", 10.0, 0.0, limits.wait_seconds),
        page_rows=_whole(known, "limit", _PAGE_ROWS, limits.page_rows),
        row_limit=None if known.get("row_limit") is None else _whole(known, "row_limit", 0, 2**53),
        timeout_seconds=_number(known, "timeout", limits.statement_seconds, 0.001, limits.most_statement_seconds),
        shape=_one_of(known, "shape", _SHAPES),
        integers_as_text=_one_of(known, "integers", _INTEGERS) == "string",
        tags=_tags(known.get("tags")),
    )


def check_text(sql: str) -> str:
    """The text, if an engine can take it. Raises InvalidRequest."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("the text of the statement is not Unicode: it has half of a surrogate pair") from None
    if "\0" in sql:
        raise InvalidRequest("the text of the statement has a character 0")
    return sql


def read_moment(value: object) -> str | None:
    """A time as ISO 8601, in UTC unless it says otherwise. Raises InvalidRequest."""
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
        if found is not None:
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        pass
    raise InvalidRequest("as_of is not a time", expected="such as 2026-01-31T12:00:00Z", found=repr(value)[:80])


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON")


def _finite(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else _refuse_constant(text)


def _with_each_name_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:  # Any: JSON
    """Refuses duplicate names: a proxy that reads the body before us may take the other one of two."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same name twice")
    return found


def _parameters(value: object) -> Mapping[str, object] | Sequence[object] | None:
    if value is None:
        return None
    if isinstance(value, dict | list):
        _check_depth(value)
        return value
    raise InvalidRequest("parameters must be an object by name, or a list", hint='Write {"zone": "JFK"} for $zone.')


def _check_depth(value: object) -> None:
    """Raise InvalidRequest for values nested deeper than the code that copies and writes them can recurse."""
    level = [value]
    for _ in range(_MOST_NESTED):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _inside(one)]
        if not level:
            return
    raise InvalidRequest("parameters are nested too deeply", expected=f"at most {_MOST_NESTED} levels")


def _inside(value: dict[str, object] | list[object]) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value


def _number(known: Mapping[str, object], name: str, default: float, least: float, most: float) -> float:
    value = known.get(name)
    if value is None:
        return default
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not least <= value <= most:  # type: ignore[arg-type, operator]
        raise InvalidRequest(f"{name} is out of range", expected=f"{least:g} to {most:g}", found=repr(value)[:80])
    return value  # type: ignore[return-value]  # it is a number


def _whole(known: Mapping[str, object], name: str, default: int, most: int) -> int:
    found = _number(known, name, default, 0, most)
    if found != int(found):
        raise InvalidRequest(f"{name} is not a whole number", found=repr(found))
    return int(found)


def _one_of(known: Mapping[str, object], name: str, choices: Sequence[str]) -> str:
    value = known.get(name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise InvalidRequest(f"unknown {name}", expected=" or ".join(choices), found=repr(value)[:80])
    return str(value)


def _tags(value: object) -> Mapping[str, str]:
    if value is None:
        return {}
    is_flat = isinstance(value, dict) and all(isinstance(text, str) and len(text) <= 200 for text in value.values())
    if not isinstance(value, dict) or not is_flat or len(value) > _MOST_TAGS:
        raise InvalidRequest(f"tags are at most {_MOST_TAGS} texts by name")
    return value

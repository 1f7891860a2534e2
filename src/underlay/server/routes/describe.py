"""Describes, for OpenAPI, requests and answers that FastAPI cannot see: streamed bodies."""

from __future__ import annotations

from typing import Any

from underlay.server.common.problem import MEDIA_TYPE
from underlay.server.formats.formats import MEDIA_TYPES

_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail", "retryable"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "code": _TEXT,
        "detail": _TEXT,
        "hint": _TEXT,
        "statement": _TEXT,
        "retryable": {"type": "boolean"},
        "position": {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in ("line", "column", "offset", "length")},
        },
    },
}
_STATUSES = {
    400: "The request is wrong.",
    401: "There is no valid token.",
    403: "The right is missing, or the request comes from a page of another site.",
    404: "It does not exist, or the token may not see it.",
    406: "There is no such format.",
    409: "Another change came first, or the name is taken.",
    410: "It has expired.",
    413: "The body or the statement is too large.",
    415: "The media type of the body is not supported.",
    421: "The Host header names another server.",
    422: "The statement failed on data, hit a limit, or was cancelled.",
    429: "Too many statements. Try again after Retry-After seconds.",
    503: "The server is stopping, or the store is unavailable. Try again after Retry-After seconds.",
}
Responses = dict[int | str, dict[str, Any]]  # Any: a part of a JSON schema
PROBLEMS: Responses = {
    status: {"description": text, "content": {MEDIA_TYPE: {"schema": _PROBLEM}}} for status, text in _STATUSES.items()
}
"""The problems that any endpoint may return."""
ROWS: Responses = {
    200: {
        "description": "The rows.",
        "content": {name.partition(";")[0]: {"schema": {}} for name in MEDIA_TYPES.values()},
    },
    304: {"description": "Not modified: the versions are the same."},
}
_STATEMENT = {
    "type": "object",
    "required": ["sql"],
    "additionalProperties": False,
    "properties": {
        "sql": {**_TEXT, "description": "One statement."},
        "parameters": {
            "description": "Values by name for $name, or a list for ?; one with a type is"
            ' {"value": "12.50", "type": "decimal(9,2)"}.',
            "oneOf": [{"type": "object"}, {"type": "array"}, {"type": "null"}],
        },
        "engine": {"type": ["string", "null"], "enum": ["auto", "duckdb", "spark", None]},
        "as_of": {"type": ["string", "null"], "description": "Read every table as it was then."},
        "wait": {"type": ["number", "null"], "minimum": 0, "maximum": 60, "description": "Seconds."},
        "limit": {"type": ["integer", "null"], "minimum": 0, "description": "Rows of the first page."},
        "row_limit": {"type": ["integer", "null"], "minimum": 0, "description": "Rows of the result."},
        "timeout": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 3600, "description": "Seconds."},
        "shape": {"type": ["string", "null"], "enum": ["arrays", "objects", None]},
        "integers": {"type": ["string", "null"], "enum": ["numbers", "string", None]},
        "tags": {"type": ["object", "null"], "additionalProperties": {**_TEXT, "maxLength": 200}, "maxProperties": 20},
    },
}
_COUNT = {"type": ["integer", "null"], "minimum": 0, "maximum": 2**53}
_MAYBE = {"type": ["string", "null"]}
PLAN_BODY: dict[str, Any] = {  # Any: a part of a JSON schema
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "sql": {**_MAYBE, "description": "A query; or else a table:"},
                        "parameters": _STATEMENT["properties"]["parameters"],  # type: ignore[index]  # as above
                        "as_of": _STATEMENT["properties"]["as_of"],  # type: ignore[index]  # as above
                        "table": _MAYBE,
                        "where": _MAYBE,
                        "columns": {"type": ["array", "null"], "items": _TEXT},
                        "version": _COUNT,
                        "scan": {**_COUNT, "description": "Return the block map of this scan."},
                        "column": {**_MAYBE, "description": "The column whose bounds the map has."},
                        "order": {"type": ["string", "null"], "enum": ["file", "min", None]},
                        "bins": {"type": ["integer", "null"], "minimum": 1, "maximum": 1_000_000},
                    },
                }
            }
        },
    }
}
STATEMENT_BODY: dict[str, Any] = {  # Any: a part of a JSON schema
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _STATEMENT}, "application/sql": {"schema": _TEXT}},
    }
}

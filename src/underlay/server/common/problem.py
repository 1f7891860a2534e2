"""Errors as HTTP problems (RFC 9457), with their position in the statement as the client sent it."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from underlay.errors import (
    Busy,
    CommitUnknown,
    Damaged,
    Forbidden,
    InvalidRequest,
    NotFound,
    SnapshotExpired,
    TableExists,
    Unavailable,
    UnderlayError,
    Unsupported,
)
from underlay.local.sql.duckdb_errors import read_message
from underlay.local.text.time_travel import rewrite_time_travel
from underlay.local.text.words import words_of
from underlay.server.formats.formats import NotAcceptable

MEDIA_TYPE = "application/problem+json"
_PLACE = re.compile(r"line (\d+), column (\d+)")
_DETAIL_CHARS = 4000
_STATUS: dict[type[UnderlayError], int] = {
    Forbidden: 403,
    TableExists: 409,
    InvalidRequest: 400,
    SnapshotExpired: 410,
    NotFound: 404,
    Unsupported: 400,
    Busy: 409,
    Unavailable: 503,
    CommitUnknown: 503,
    Damaged: 503,
    UnderlayError: 400,
}
_BY_ENGINE: dict[type[Exception], tuple[int, str]] = {
    duckdb.ParserException: (400, "syntax_error"),
    duckdb.SyntaxException: (400, "syntax_error"),
    duckdb.BinderException: (400, "invalid_query"),
    duckdb.CatalogException: (400, "unknown_name"),
    duckdb.PermissionException: (400, "refused"),
    duckdb.OutOfMemoryException: (422, "memory_limit"),
    duckdb.InterruptException: (422, "cancelled"),
    duckdb.IOException: (422, "spill_limit"),
    duckdb.NotImplementedException: (400, "unsupported"),
    duckdb.NotSupportedError: (400, "unsupported"),
    duckdb.Error: (422, "failed_on_data"),
}
_OUT_OF_MEMORY = "Out of Memory Error"
_BAD_PARAMETERS = re.compile(r"parameters: |Parameter argument/count mismatch|Python integer too large")
_UNKNOWN_COLUMN = re.compile(r'Referenced column "|does not have a column named|Table "[^"]*" does not have')


@dataclass(kw_only=True, eq=False)  # not frozen: Python sets the traceback of exceptions
class Problem(Exception):  # the standard's name
    """The error of a request. `code` never changes once released; `more` holds other members of the object."""

    status: int
    code: str
    detail: str
    hint: str | None = None
    position: Mapping[str, int] | None = None
    retry_after_seconds: int | None = None
    more: Mapping[str, object] = field(default_factory=dict)
    challenge: str | None = None
    """The value of WWW-Authenticate."""

    def as_json(self, statement: str | None = None) -> dict[str, object]:
        """The members of application/problem+json."""
        known: dict[str, object | None] = {
            "type": f"/errors#{self.code}",
            "title": self.code.replace("_", " ").capitalize(),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "hint": self.hint,
            "statement": statement,
            "position": None if self.position is None else dict(self.position),
            "retry_after": self.retry_after_seconds,
            **self.more,
        }
        found = {name: value for name, value in known.items() if value is not None}
        return {**found, "retryable": self.retry_after_seconds is not None or self.code == "commit_conflict"}

    @classmethod
    def from_json(cls, known: Mapping[str, object]) -> Problem:
        """A problem that a worker sent."""
        status, place, after = known["status"], known.get("position"), known.get("retry_after")
        hint, more = known.get("hint"), known.get("more")
        return cls(
            status=status if isinstance(status, int) else 500,
            code=str(known["code"]),
            detail=str(known["detail"]),
            hint=None if hint is None else str(hint),
            position=place if isinstance(place, dict) else None,
            retry_after_seconds=after if isinstance(after, int) else None,
            more=more if isinstance(more, dict) else {},
        )


def problem_of(error: BaseException, text: str | None = None) -> Problem:
    """An error that running `text` raised."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, UnderlayError) and _OUT_OF_MEMORY not in error.problem:
        return _of_ours(error, text)
    if isinstance(error, NotAcceptable):
        return Problem(status=406, code="not_acceptable", detail=str(error))
    if isinstance(error, MemoryError):
        return Problem(status=422, code="memory_limit", detail="the statement needs more memory than it may have")
    if isinstance(error, RecursionError):
        return Problem(status=400, code="invalid_request", detail="the statement is nested too deeply")
    if _OUT_OF_MEMORY in str(error):
        return Problem(status=422, code="memory_limit", detail=_cut(read_message(error)[0].partition("\n\n")[0]))
    if isinstance(error, duckdb.Error):
        status, code = _by_engine(error)
        return Problem(status=status, code=code, detail=_cut(read_message(error)[0]), position=_place(error, text))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem(
            status=503, code="spool_full", detail="the server's disk for results is full", retry_after_seconds=30
        )
    if isinstance(error, OSError):
        return Problem(status=503, code="unavailable", detail=_cut(str(error)), retry_after_seconds=5)
    if isinstance(error, pa.ArrowException | OverflowError | UnicodeError):
        return Problem(status=422, code="failed_on_data", detail=_cut(str(error)))
    return Problem(status=500, code="internal", detail=f"the server failed: {type(error).__name__}")


def _of_ours(error: UnderlayError, text: str | None) -> Problem:
    status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    code, hint, detail = error.code, error.hint, _detail(error)
    engine = error.__cause__ or error.__context__
    position = _written_place(error, text)
    if type(error) in (InvalidRequest, Unavailable) and isinstance(engine, duckdb.Error):
        status, code = _by_engine(engine)
        if _UNKNOWN_COLUMN.search(detail):
            code = "unknown_column"
        detail, _, _ = detail.partition("\n\nLINE ")
        position = position or _place(engine, text)
    elif type(error) is InvalidRequest and isinstance(engine, pa.ArrowException | OSError):  # after the first rows
        status, code, position = 422, "failed_on_data", _place(engine, text)
    more: dict[str, object] = {}
    if isinstance(error, CommitUnknown) and error.commit_id is not None:
        more["commit_id"] = error.commit_id
    retry = 5 if isinstance(error, Unavailable | CommitUnknown) and status == 503 else None
    return Problem(
        status=status,
        code=code,
        detail=_cut(detail),
        hint=hint,
        position=position,
        retry_after_seconds=retry,
        more=more,
    )


def _by_engine(error: duckdb.Error) -> tuple[int, str]:
    if isinstance(error, duckdb.InvalidInputException) and _BAD_PARAMETERS.search(read_message(error)[0]):
        return 400, "bad_parameter"
    return next(_BY_ENGINE[kind] for kind in type(error).__mro__ if kind in _BY_ENGINE)


def _detail(error: UnderlayError) -> str:
    """The error's text without the hint, which has its own field, and the place, which is given as numbers."""
    said = [f"expected {error.expected}"] if error.expected is not None else []
    said += [f"found {error.found}"] if error.found is not None else []
    place = f"{error.place}: " if error.place and not _PLACE.search(error.place) else ""
    return f"{place}{error.problem} ({', '.join(said)})" if said else f"{place}{error.problem}"


def _cut(text: str) -> str:
    return text if len(text) <= _DETAIL_CHARS else f"{text[:_DETAIL_CHARS]}…"


def _written_place(error: UnderlayError, text: str | None) -> Mapping[str, int] | None:
    """The position that our own checks give in words."""
    found = _PLACE.search(error.place or "")
    if found is None or text is None:
        return None
    return position_at(text, int(found[1]), int(found[2]))


def position_at(text: str, line: int, column: int) -> Mapping[str, int] | None:
    """The place of a line and a column, which count from 1."""
    lines = text.split("\n")
    if line > len(lines):
        return None
    return _position(text, sum(len(one) + 1 for one in lines[: line - 1]) + column - 1)


def _place(error: BaseException, text: str | None) -> Mapping[str, int] | None:
    """The position that the engine gives: a byte offset in the text that it read, which is the client's with versions
    removed.
    """
    _, at = read_message(error)
    if at is None or text is None:
        return None
    try:
        rewritten = rewrite_time_travel(text).text
        return _position(text, _in_original(text, rewritten, _characters(rewritten, at)))
    except UnderlayError:
        return None


def _characters(text: str, size_bytes: int) -> int:
    return len(text.encode(errors="surrogatepass")[:size_bytes].decode(errors="replace"))


def _in_original(text: str, rewritten: str, at: int) -> int:
    """Maps an offset in the rewritten text to the original: both have the same words in the same order."""
    if text == rewritten:
        return at
    moved = done = 0
    originals = words_of(text)
    for word in words_of(rewritten):
        if word.start > at:
            break
        for number in range(done, len(originals)):
            original = originals[number]
            if original.text == word.text or word.text.startswith(f"{original.text}@"):
                moved, done = original.start - word.start, number + 1
                break
    return max(at + moved, 0)


def _position(text: str, offset: int) -> Mapping[str, int]:
    """Line and column, counted from 1; offset and length of the word there, in code points."""
    offset = min(offset, len(text))
    try:
        length = next((word.end + 1 - offset for word in words_of(text) if word.start <= offset <= word.end), 1)
    except InvalidRequest:
        length = 1
    line = text.count("\n", 0, offset) + 1
    return {"line": line, "column": offset - text.rfind("\n", 0, offset), "offset": offset, "length": length}

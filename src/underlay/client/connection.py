"""A connection to a server: `connect(url, token).sql("select …")`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

import pyarrow as pa

from underlay.client.dbapi import Cursor
from underlay.client.transport import HttpAnswer, HttpTransport
from underlay.errors import InvalidRequest
from underlay.local.show.frames import as_pandas, as_polars, check_installed

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # optional, and without types
    import polars as pl

_ARROW = "application/vnd.apache.arrow.stream"
Given = Sequence[object] | Mapping[str, object]


def connect(url: str, token: str | None = None, *, timeout_seconds: float = 3600.0) -> RemoteConnection:
    """A connection to the server at a URL. Makes no request. `timeout_seconds`: how long to wait for a silent
    server.
    """
    return RemoteConnection(url, token, timeout_seconds=timeout_seconds)


class RemoteConnection:
    """A connection to a server, for one thread at a time. Read all rows of a statement before you send the next one."""

    def __init__(self, url: str, token: str | None, *, timeout_seconds: float) -> None:
        self._transport = HttpTransport(url, token, timeout_seconds)
        self._reading: RemoteResult | None = None

    def sql(
        self,
        text: str,
        parameters: Given | None = None,
        *,
        as_of: str | datetime | None = None,
        timeout_seconds: float | None = None,
        key: str | None = None,
    ) -> RemoteResult:
        """Run a statement. Its rows arrive as you read them.

        With `as_of` all tables are read as of a time. `key` makes a change happen once, however often it is sent.
        Raises what `Lake.sql` raises.
        """
        if self._reading is not None:
            self._reading.close()
        body = {
            "sql": text,
            "parameters": _as_sent(parameters),
            "as_of": as_of.isoformat() if isinstance(as_of, datetime) else as_of,
            "timeout": timeout_seconds,
        }
        headers = {"Accept": _ARROW, **({"Idempotency-Key": key} if key is not None else {})}
        known = {name: value for name, value in body.items() if value is not None}
        self._reading = RemoteResult(self._transport.post("/v1/sql", known, headers), self._transport)
        return self._reading

    def info(self) -> dict[str, Any]:  # Any: JSON
        """The server's version and limits, and what the token may do."""
        if self._reading is not None:
            self._reading.close()
        found: dict[str, Any] = json.loads(self._transport.get("/v1/info", {}).read())
        return found

    def cursor(self) -> Cursor:
        """A DB-API 2.0 cursor."""
        return Cursor(self)

    def commit(self) -> None:
        """Does nothing: each statement commits by itself."""

    def rollback(self) -> None:
        """Raise InvalidRequest: each statement committed by itself."""
        raise InvalidRequest("there is no transaction to undo", hint="Each statement is one commit, or none.")

    def close(self) -> None:
        """Close the connection. A statement whose rows are still arriving is cancelled."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RemoteResult:
    """The rows of a statement, which can be read once."""

    def __init__(self, answer: HttpAnswer, transport: HttpTransport) -> None:
        self.statement = answer.statement
        """The id of the statement on the server."""
        self._answer = answer
        self._transport = transport
        self._is_read = False
        self._reader = pa.ipc.open_stream(pa.PythonFile(answer, mode="r"))
        self.schema: pa.Schema = self._reader.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they arrive. Raises Unavailable when the stream breaks off."""
        if self._is_read:
            raise InvalidRequest("the result was read already", hint="Run the statement again, or keep to_arrow().")
        yield from self._reader
        self._answer.read()  # the end of the body: only then is the connection free for the next request
        self._is_read = True

    def to_arrow(self) -> pa.Table:
        """The rows, all at once."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        check_installed("pandas")
        return as_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The rows as a Polars frame."""
        check_installed("polars")
        return as_polars(self.to_arrow())

    def close(self) -> None:
        """Stop reading. Closes the connection, so that the server stops the statement; the next statement opens a new
        one.
        """
        if not self._is_read:
            self._is_read = True
            self._transport.close()


def _as_sent(parameters: Given | None) -> object:
    if parameters is None:
        return None
    if isinstance(parameters, Mapping):
        return {name: _value(value) for name, value in parameters.items()}
    return [_value(value) for value in parameters]


def _value(value: object) -> object:
    """A value as JSON, with its type where JSON has none."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"value": repr(value), "type": "double"}
        case Decimal():
            exponent = value.as_tuple().exponent
            scale = max(0, -exponent) if isinstance(exponent, int) else 0
            return {"value": str(value), "type": f"decimal(38,{scale})"}
        case datetime():
            kind = "timestamp" if value.tzinfo is None else "timestamptz"
            return {"value": value.isoformat(), "type": kind}
        case date():
            return {"value": value.isoformat(), "type": "date"}
        case time():
            return {"value": value.isoformat(), "type": "time"}
        case UUID():
            return {"value": str(value), "type": "uuid"}
    raise InvalidRequest("a parameter of this type cannot be sent", found=type(value).__name__)

"""The Flight server: each call of a client becomes a statement or a listing.

A statement is run when its FlightInfo is asked for, and its ticket names the kept rows, for its own token alone: so the
info has the exact schema and the number of rows, and rows can be fetched again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from threading import Event, Thread
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import flight

from underlay.api.lake import Lake
from underlay.api.limited.limited_lake import LimitedLake
from underlay.errors import Unavailable
from underlay.server.access.tokens import AccessToken, TokenFile
from underlay.server.common.problem import Problem, problem_of
from underlay.server.common.settings import ServerSettings
from underlay.server.flight.callers import MIDDLEWARE, Caller, Callers, NoHandshake
from underlay.server.flight.commands import (
    FlightCommand,
    GetListing,
    GetSqlInfo,
    PreparedQuery,
    StatementQuery,
    StatementTicket,
    pack,
    prepared_result,
    read_command,
    read_handle,
    read_query,
    statement_ticket,
    unpack,
    update_result,
)
from underlay.server.flight.listings import INFO_SCHEMA, info_rows, listing_rows, listing_schema
from underlay.server.flight.protobuf import bytes_of, number_field, read_fields
from underlay.server.flight.statements import FlightStatements, IsCancelled
from underlay.server.flight.values import parameters_of
from underlay.server.statements.statement import RunStatement

_log = logging.getLogger(__name__)
_CREATE, _CLOSE = "CreatePreparedStatement", "ClosePreparedStatement"
_CANCEL_QUERY, _CANCEL_INFO = "CancelQuery", "CancelFlightInfo"
_CANCELLED, _CANCELLING = 1, 2
_MOST_BOUND_ROWS = 10_000
Call = TypeVar("Call", bound=Callable[..., Any])  # Any: of what a handler returns


def _answering(call: Call) -> Call:
    """Turn any error of a handler into one that Flight knows."""

    @wraps(call)
    def answer(*given: Any) -> Any:  # noqa: ANN401  # whatever the handler takes and returns
        try:
            return call(*given)
        except (flight.FlightError, NotImplementedError):
            raise
        except Exception as error:  # noqa: BLE001  # told to the client
            problem = problem_of(error)
            if problem.code == "internal":
                _log.exception("a call of Flight SQL failed")
            raise flight_error(problem) from None

    # pyarrow sends the traceback of most errors to the client, which must not learn where the server is installed
    plain: Any = answer  # Any: mypy does not know that it is a function
    plain.__code__ = plain.__code__.replace(co_filename="<server>")
    return answer  # type: ignore[return-value]  # the same signature


def flight_error(problem: Problem) -> Exception:
    """A problem as an error of Flight: the code of gRPC follows the status of HTTP."""
    where = (
        "" if problem.position is None else f" (line {problem.position['line']}, column {problem.position['column']})"
    )
    hint = "" if problem.hint is None else f" {problem.hint}"
    text = f"{problem.code}: {problem.detail.rstrip('.')}{where}.{hint}"
    if problem.code == "cancelled":
        return flight.FlightCancelledError(text)
    if problem.code in ("statement_timeout",):
        return flight.FlightTimedOutError(text)
    match problem.status:
        case 401:
            return flight.FlightUnauthenticatedError(text)
        case 403:
            return flight.FlightUnauthorizedError(text)
        case 404 | 410:
            return KeyError(text)
        case 429 | 503:
            return flight.FlightUnavailableError(text)
        case 500:
            return flight.FlightInternalError(text)
        case _:
            return pa.ArrowInvalid(text)


class FlightSqlServer(flight.FlightServerBase):
    """Listens from when it is made. `end` stops it within a deadline."""

    def __init__(
        self,
        location: str,
        settings: ServerSettings,
        statements: FlightStatements,
        lake: Lake,
        tokens: TokenFile | None,
    ) -> None:
        certificates = []
        if settings.certificate is not None:
            key = settings.certificate_key or settings.certificate
            certificates = [(settings.certificate.read_bytes(), key.read_bytes())]
        super().__init__(
            location,
            auth_handler=NoHandshake(),
            tls_certificates=certificates or None,  # type: ignore[arg-type]  # bytes too
            middleware={MIDDLEWARE: Callers(tokens)},
        )
        self._settings = settings
        self._statements = statements
        self._lake = lake
        self._ending = Event()

    def end(self, seconds: float) -> bool:
        """Stop. Whether it stopped in time: gRPC waits for clients that do not read, for ever."""
        self._ending.set()
        stopping = Thread(target=self.shutdown, daemon=True, name="underlay-flight-end")
        stopping.start()
        stopping.join(seconds)
        return not stopping.is_alive()

    @_answering
    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """See FlightServerBase."""
        command = self._command(descriptor)
        if isinstance(command, StatementQuery | PreparedQuery):
            statement = self._run(command, context)
            rows = self._statements.rows(statement)
            ticket = statement_ticket(statement.id)
            return _info(rows.schema, descriptor, ticket, statement.rows)
        return _info(_schema_of(command), descriptor, descriptor.command or b"", -1)

    @_answering
    def get_schema(  # type: ignore[override]  # the stubs have it wrong
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult:
        """See FlightServerBase."""
        command = self._command(descriptor)
        if isinstance(command, PreparedQuery):
            command = StatementQuery(sql=self._statements.prepared(command.handle, _caller(context)).sql)
        if isinstance(command, StatementQuery):
            handle, columns, _ = self._statements.prepare(command.sql, _caller(context), _gone(context))
            self._statements.close(handle, _caller(context))
            return flight.SchemaResult(columns)
        return flight.SchemaResult(_schema_of(command))

    @_answering
    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """See FlightServerBase."""
        command, caller = read_command(ticket.ticket), _caller(context)
        match command:
            case StatementTicket(handle=handle):
                rows = self._statements.rows(self._statements.find(handle, caller))
                return flight.GeneratorStream(rows.schema, self._batches(rows))
            case GetSqlInfo():
                return flight.RecordBatchStream(info_rows(command, is_writable=self._settings.is_writable))
            case GetListing():
                limited = LimitedLake(self._lake, may_read=caller.rights.may_read, may_write=caller.rights.may_write)
                return flight.RecordBatchStream(listing_rows(command, limited))
        raise NotImplementedError("a ticket of this server is that of a statement or a listing")

    @_answering
    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """See FlightServerBase: changes, and parameters of prepared statements."""
        command, caller = self._command(descriptor), _caller(context)
        if isinstance(command, StatementQuery) and command.is_update:
            _refuse_transaction(command)
            count = self._statements.change(command.sql, caller, _gone(context), None)
            writer.write(pa.py_buffer(update_result(count)))
            return
        if not isinstance(command, PreparedQuery):
            raise NotImplementedError("the server does not take rows by this command")
        known = self._statements.prepared(command.handle, caller)
        bound = self._bound(reader)
        if command.is_update:
            count = self._statements.change(known.sql, caller, _gone(context), bound)
            writer.write(pa.py_buffer(update_result(count)))
        else:
            known.bound = bound

    def _bound(self, reader: flight.MetadataRecordBatchReader) -> list[list[object]] | None:
        found: list[list[object]] = []
        for chunk in reader:
            if chunk.data is not None:
                found += parameters_of(chunk.data)
            if len(found) > _MOST_BOUND_ROWS:
                raise Problem(status=413, code="too_large", detail=f"more than {_MOST_BOUND_ROWS:,} rows of parameters")
        return found or None

    @_answering
    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> list[bytes]:
        """See FlightServerBase."""
        caller, body = _caller(context), action.body.to_pybytes()
        if action.type == _CREATE:
            asked = read_query(unpack(body)[1])
            _refuse_transaction(asked)
            handle, rows, parameters = self._statements.prepare(asked.sql, caller, _gone(context))
            return [prepared_result(handle, rows.serialize().to_pybytes(), parameters.serialize().to_pybytes())]
        if action.type == _CLOSE:
            self._statements.close(read_handle(unpack(body)[1]), caller)
            return []
        if action.type in (_CANCEL_QUERY, _CANCEL_INFO):
            message = unpack(body)[1] if action.type == _CANCEL_QUERY else body
            info = flight.FlightInfo.deserialize(bytes_of(read_fields(message), 1))
            result = _CANCELLED
            for endpoint in info.endpoints:
                command = read_command(endpoint.ticket.ticket)
                if isinstance(command, StatementTicket):
                    with suppress(Problem):
                        if self._statements.cancel(self._statements.find(command.handle, caller)):
                            result = _CANCELLING
            found = number_field(1, result)
            return [pack("ActionCancelQueryResult", found) if action.type == _CANCEL_QUERY else found]
        raise NotImplementedError(f"the server has no action {action.type}")

    @_answering
    def list_actions(  # type: ignore[override]  # the stubs have it wrong
        self, context: flight.ServerCallContext
    ) -> list[tuple[str, str]]:
        """See FlightServerBase."""
        return [
            (_CREATE, "Prepare a statement."),
            (_CLOSE, "Forget a prepared statement."),
            (_CANCEL_QUERY, "Stop a statement."),
            (_CANCEL_INFO, "Stop a statement."),
        ]

    def _command(self, descriptor: flight.FlightDescriptor) -> FlightCommand:
        if descriptor.descriptor_type is not flight.DescriptorType.CMD:
            raise NotImplementedError("this is Flight SQL: a descriptor is a command, not a path")
        return read_command(descriptor.command or b"")

    def _run(self, command: StatementQuery | PreparedQuery, context: flight.ServerCallContext) -> RunStatement:
        """Run a query; a change too, since a driver may not know that it is one."""
        caller = _caller(context)
        if isinstance(command, StatementQuery):
            _refuse_transaction(command)
            return self._statements.run(command.sql, caller, _gone(context), may_change=True)
        known = self._statements.prepared(command.handle, caller)
        if known.bound is not None and len(known.bound) > 1:
            raise Problem(
                status=400, code="bad_parameter", detail="a query takes one row of parameters, and several were bound"
            )
        parameters = known.bound[0] if known.bound else None
        return self._statements.run(known.sql, caller, _gone(context), parameters=parameters or None, may_change=True)

    def _batches(self, rows: pa.ipc.RecordBatchFileReader) -> Iterator[pa.RecordBatch]:
        for at in range(rows.num_record_batches):
            if self._ending.is_set():
                raise flight.FlightUnavailableError("the server is stopping")
            yield rows.get_batch(at)


def open_flight(
    settings: ServerSettings, statements: FlightStatements, lake: Lake, tokens: TokenFile | None
) -> FlightSqlServer:
    """A server that listens. Raises Unavailable."""
    host, port = settings.flight or ("127.0.0.1", 0)
    scheme = "grpc+tls" if settings.certificate is not None else "grpc+tcp"
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    try:
        return FlightSqlServer(f"{scheme}://{name}:{port}", settings, statements, lake, tokens)
    except (pa.ArrowException, OSError) as error:
        raise Unavailable(f"cannot listen for Flight SQL: {error}", place=f"{name}:{port}") from None


def _caller(context: flight.ServerCallContext) -> AccessToken:
    found = context.get_middleware(MIDDLEWARE)
    if not isinstance(found, Caller):
        raise flight.FlightUnauthenticatedError("the call has no caller")
    return found.token


def _gone(context: flight.ServerCallContext) -> IsCancelled:
    return context.is_cancelled


def _info(schema: pa.Schema, descriptor: flight.FlightDescriptor, ticket: bytes, rows: int) -> flight.FlightInfo:
    return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(ticket, [])], rows, -1)


def _schema_of(command: FlightCommand) -> pa.Schema:
    match command:
        case GetSqlInfo():
            return INFO_SCHEMA
        case GetListing():
            return listing_schema(command)
    raise NotImplementedError("this command has no rows")


def _refuse_transaction(asked: StatementQuery) -> None:
    if asked.is_transaction:
        raise NotImplementedError("there are no transactions over several statements: each statement is one commit")

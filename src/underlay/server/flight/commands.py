"""The messages of Flight SQL that clients send, and those that they get. Pure.

Numbers of fields are those of FlightSql.proto. Commands travel in `google.protobuf.Any`: the name of the message, and
its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from underlay.errors import Malformed, Unsupported
from underlay.server.flight.protobuf import (
    bytes_field,
    bytes_of,
    number_field,
    numbers_of,
    read_fields,
    text_of,
    texts_of,
)

_PREFIX = "type.googleapis.com/arrow.flight.protocol.sql."


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementQuery:
    """Run a query; or with `is_update`, a change."""

    sql: str
    is_update: bool = False
    is_transaction: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedQuery:
    """Run a prepared query; or with `is_update`, a change."""

    handle: bytes
    is_update: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementTicket:
    """Rows of a statement that was run."""

    handle: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GetSqlInfo:
    """Facts about the server; all without numbers."""

    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GetListing:
    """Names and keys: `what` is Catalogs, DbSchemas, Tables, TableTypes, PrimaryKeys, …"""

    what: str
    catalog: str | None = None
    schema: str | None = None
    table: str | None = None
    types: tuple[str, ...] = ()
    has_columns: bool = False


FlightCommand = StatementQuery | PreparedQuery | StatementTicket | GetSqlInfo | GetListing


def pack(name: str, message: bytes) -> bytes:
    """A message in an Any."""
    return bytes_field(1, f"{_PREFIX}{name}") + bytes_field(2, message)


def unpack(data: bytes) -> tuple[str, bytes]:
    """The name of a message in an Any, and its bytes. Raises Malformed, Unsupported."""
    fields = read_fields(data)
    url = text_of(fields, 1) or ""
    if not url:
        raise Malformed("not a command of Flight SQL", expected="a message in google.protobuf.Any")
    if not url.startswith(_PREFIX):
        raise Unsupported("not a command of Flight SQL", found=url[:100])
    return url.removeprefix(_PREFIX), bytes_of(fields, 2)


def read_command(data: bytes) -> FlightCommand:
    """The command of a descriptor or ticket. Raises Malformed; Unsupported for one that is not served."""
    name, message = unpack(data)
    read = _READERS.get(name)
    if read is None:
        raise Unsupported("the server does not serve this command of Flight SQL", found=name)
    return read(message)


def read_query(message: bytes) -> StatementQuery:
    """CommandStatementQuery, CommandStatementUpdate and ActionCreatePreparedStatementRequest."""
    fields = read_fields(message)
    return StatementQuery(sql=text_of(fields, 1) or "", is_transaction=bool(bytes_of(fields, 2)))


def read_handle(message: bytes) -> bytes:
    """The handle of a message that has nothing else."""
    return bytes_of(read_fields(message), 1)


def _update(message: bytes) -> StatementQuery:
    found = read_query(message)
    return StatementQuery(sql=found.sql, is_update=True, is_transaction=found.is_transaction)


def _tables(message: bytes) -> GetListing:
    fields = read_fields(message)
    return GetListing(
        what="Tables",
        catalog=text_of(fields, 1),
        schema=text_of(fields, 2),
        table=text_of(fields, 3),
        types=tuple(texts_of(fields, 4)),
        has_columns=any(numbers_of(fields, 5)),
    )


def _schemas(message: bytes) -> GetListing:
    fields = read_fields(message)
    return GetListing(what="DbSchemas", catalog=text_of(fields, 1), schema=text_of(fields, 2))


def _keys(what: str) -> Callable[[bytes], GetListing]:
    def read(message: bytes) -> GetListing:
        fields = read_fields(message)
        return GetListing(what=what, catalog=text_of(fields, 1), schema=text_of(fields, 2), table=text_of(fields, 3))

    return read


_READERS: Mapping[str, Callable[[bytes], FlightCommand]] = {
    "CommandStatementQuery": read_query,
    "CommandStatementUpdate": _update,
    "CommandPreparedStatementQuery": lambda message: PreparedQuery(handle=read_handle(message)),
    "CommandPreparedStatementUpdate": lambda message: PreparedQuery(handle=read_handle(message), is_update=True),
    "TicketStatementQuery": lambda message: StatementTicket(handle=read_handle(message)),
    "CommandGetSqlInfo": lambda message: GetSqlInfo(numbers=tuple(numbers_of(read_fields(message), 1))),
    "CommandGetCatalogs": lambda _: GetListing(what="Catalogs"),
    "CommandGetDbSchemas": _schemas,
    "CommandGetTables": _tables,
    "CommandGetTableTypes": lambda _: GetListing(what="TableTypes"),
    "CommandGetPrimaryKeys": _keys("PrimaryKeys"),
    "CommandGetExportedKeys": _keys("ExportedKeys"),
    "CommandGetImportedKeys": _keys("ImportedKeys"),
    "CommandGetCrossReference": lambda _: GetListing(what="CrossReference"),
    "CommandGetXdbcTypeInfo": lambda _: GetListing(what="XdbcTypeInfo"),
}


def statement_ticket(handle: str) -> bytes:
    """The ticket of a statement's rows."""
    return pack("TicketStatementQuery", bytes_field(1, handle))


def prepared_result(handle: bytes, rows: bytes, parameters: bytes) -> bytes:
    """What creating a prepared statement returns: its handle, and the schemas of its rows and parameters."""
    message = bytes_field(1, handle) + bytes_field(2, rows) + bytes_field(3, parameters)
    return pack("ActionCreatePreparedStatementResult", message)


def update_result(count: int) -> bytes:
    """What a change returns: the number of its rows, -1 if unknown."""
    return number_field(1, count)

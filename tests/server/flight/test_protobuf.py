"""The messages of Flight SQL: read, written, and refused when they are damaged."""

from __future__ import annotations

from contextlib import suppress

import pytest
from google.protobuf import any_pb2, wrappers_pb2
from hypothesis import given
from hypothesis import strategies as st

from underlay.errors import Malformed, UnderlayError, Unsupported
from underlay.server.flight.commands import (
    GetListing,
    GetSqlInfo,
    PreparedQuery,
    StatementQuery,
    StatementTicket,
    pack,
    read_command,
    statement_ticket,
    unpack,
)
from underlay.server.flight.protobuf import (
    bytes_field,
    bytes_of,
    number_field,
    numbers_of,
    read_fields,
    read_varint,
    text_of,
    texts_of,
    varint,
)


@given(st.integers(-(2**63), 2**64 - 1))
def test_numbers_are_written_as_googles_library_writes_them(number: int) -> None:
    assert read_varint(varint(number), 0) == (number % 2**64, len(varint(number)))
    if -(2**63) <= number < 2**63:
        wanted = wrappers_pb2.Int64Value(value=number).SerializeToString()
        assert wanted == (number_field(1, number) if number else b"")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary())
def test_messages_in_any_are_those_of_googles_library(name: str, message: bytes) -> None:
    packed = any_pb2.Any(type_url=f"type.googleapis.com/arrow.flight.protocol.sql.{name}", value=message)
    assert unpack(packed.SerializeToString()) == (name, message)
    assert any_pb2.Any.FromString(pack(name, message)) == packed


@given(st.binary())
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    with suppress(Malformed):
        read_fields(data)
    with suppress(UnderlayError):
        read_command(data)


def test_every_prefix_of_a_message_is_refused_or_shorter() -> None:
    whole = bytes_field(1, "select 1") + number_field(2, 300) + bytes_field(3, b"\xff" * 200)
    fields = read_fields(whole)
    assert (text_of(fields, 1), numbers_of(fields, 2), bytes_of(fields, 3)) == ("select 1", [300], b"\xff" * 200)
    for size in range(1, len(whole)):
        try:
            assert len(read_fields(whole[:size])) < 3
        except Malformed:
            continue


def test_packed_and_repeated_numbers_and_unknown_fields() -> None:
    packed = bytes_field(1, varint(3) + varint(500)) + number_field(1, 4)
    skipped = varint(9 << 3 | 5) + b"1234" + varint(8 << 3 | 1) + b"12345678" + bytes_field(7, b"new")
    assert read_command(pack("CommandGetSqlInfo", packed + skipped)) == GetSqlInfo(numbers=(3, 500, 4))
    with pytest.raises(Malformed, match="wire type"):
        read_fields(varint(1 << 3 | 3))
    with pytest.raises(Malformed, match="number 0"):
        read_fields(varint(0))
    with pytest.raises(Malformed, match="does not end"):
        read_fields(b"\x80" * 11)
    with pytest.raises(Malformed, match="UTF-8"):
        texts_of(read_fields(bytes_field(4, b"\xff")), 4)


def test_commands_are_read_by_their_names() -> None:
    query = bytes_field(1, "select 1")
    assert read_command(pack("CommandStatementQuery", query)) == StatementQuery(sql="select 1")
    assert read_command(pack("CommandStatementUpdate", query)) == StatementQuery(sql="select 1", is_update=True)
    with_transaction = StatementQuery(sql="select 1", is_transaction=True)
    assert read_command(pack("CommandStatementQuery", query + bytes_field(2, b"t"))) == with_transaction
    assert read_command(pack("CommandPreparedStatementQuery", bytes_field(1, b"h"))) == PreparedQuery(handle=b"h")
    assert read_command(statement_ticket("st_1")) == StatementTicket(handle=b"st_1")
    tables = bytes_field(2, "s%") + bytes_field(3, "t_") + bytes_field(4, "TABLE") + number_field(5, 1)
    wanted = GetListing(what="Tables", schema="s%", table="t_", types=("TABLE",), has_columns=True)
    assert read_command(pack("CommandGetTables", tables)) == wanted
    with pytest.raises(Unsupported, match="CommandStatementIngest"):
        read_command(pack("CommandStatementIngest", b""))
    with pytest.raises(Malformed):
        read_command(b"")

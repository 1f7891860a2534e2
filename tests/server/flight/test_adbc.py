"""ADBC's driver of Flight SQL on a server: exact types, rights, changes, parameters, cancelling, stopping."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pytest
from adbc_driver_flightsql import DatabaseOptions
from pyarrow import flight

from tests.server.conftest import Served, running, wait_until
from underlay.server.flight.commands import pack, statement_ticket
from underlay.server.flight.protobuf import bytes_field

TYPES = """select 1::tinyint a, 2::smallint b, 3::integer c, 9223372036854775807::bigint d,
    18446744073709551615::ubigint e, 1.5::float f, 'NaN'::double g, 12.50::decimal(9, 2) h, 'é' i, '\\x00\\xFF'::blob j,
    true k, null::integer l, date '2024-02-29' m, time '01:02:03.000004' n, timestamp '2024-02-29 01:02:03.000004' o,
    timestamptz '2024-02-29 01:02:03+00' p, [1, null] q, {'x': 1, 'y': 'z'} r, map {'k': 1} s, sum(d) over () t"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(tmp_path_factory.mktemp("flight"), flight=True) as found:
        yield found


def port_of(served: Served) -> int:
    return served.server.config.app.state.flight.port


def connect(served: Served, name: str | None = "reader") -> adbc.Connection:
    options = {} if name is None else {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {served.tokens[name]}"}
    return adbc.connect(f"grpc://127.0.0.1:{port_of(served)}", db_kwargs=options, autocommit=True)


def ask(served: Served, sql: str, parameters: object = None, name: str = "reader") -> pa.Table:
    with connect(served, name) as connection, connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetch_arrow_table()


def test_rows_have_the_types_of_the_arrow_answer(served: Served) -> None:
    sql = f"select * exclude (d2) from ({TYPES.replace('sum(d) over () t', '1 d2')})"
    headers = {"Accept": "application/vnd.apache.arrow.stream"}
    with served.client() as client:
        wanted = pa.ipc.open_stream(client.post("/v1/sql", json={"sql": sql}, headers=headers).content).read_all()
    found = ask(served, sql)
    assert found.schema.equals(wanted.schema)
    assert found.drop(["g"]).equals(wanted.drop(["g"]))
    assert str(found["g"][0]) == str(wanted["g"][0]) == "nan"


def test_a_table_is_read_whole(served: Served) -> None:
    found = ask(served, "select * from shop.orders order by id")
    assert found.num_rows == 5000
    assert found.schema.field("price").type == pa.decimal128(9, 2)
    assert found["id"].to_pylist() == list(range(5000))
    assert ask(served, "select * from shop.orders where false").schema.names == ["id", "zone", "price"]


def test_parameters_are_bound_with_their_types(served: Served) -> None:
    values = (5, "zone 5", 1.25, True, None, b"\x00\xff", date(2024, 2, 29), time(1, 2, 3), datetime(2024, 1, 1, 1))
    sql = "select ? + 0 a, ? b, ? * 2 c, ? d, ? e, ?::blob f, ? g, ? h, ? i"
    (row,) = ask(served, sql, values).to_pylist()
    assert tuple(row.values()) == (5, "zone 5", 2.5, *values[3:])
    (row,) = ask(served, "select ? a, ? b", (datetime(2024, 1, 1, tzinfo=UTC), Decimal("1.50"))).to_pylist()
    assert row == {"a": datetime(2024, 1, 1, tzinfo=UTC), "b": Decimal("1.50")}
    sql = "select count(*) n from shop.orders where zone = ? and id < ?"
    with connect(served) as connection, connection.cursor() as cursor:
        for zone, most in (("zone 1", 100), ("zone 2", 7)):
            cursor.execute(sql, (zone, most))
            assert cursor.fetchone() == (sum(one % 7 == int(zone[-1]) for one in range(most)),)


def test_changes_return_counts_and_only_with_rights(served: Served) -> None:
    with connect(served, "writer") as connection, connection.cursor() as cursor:
        assert cursor.execute("create table shop.made (id bigint, name varchar)") is None or True
        cursor.executemany("insert into shop.made values (?, ?)", [(1, "a"), (2, "b"), (3, None)])
        assert cursor.adbc_statement is not None
        cursor.adbc_statement.set_sql_query("delete from shop.made where id = 2")
        assert cursor.adbc_statement.execute_update() == 1
        cursor.execute("select * from shop.made order by id")
        assert cursor.fetchall() == [(1, "a"), (3, None)]
        cursor.execute("drop table shop.made")
    for name, sql in (("reader", "delete from shop.orders"), ("writer", "insert into secret.pay values (2, 3)")):
        with connect(served, name) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_sql_query(sql)
            with pytest.raises(adbc.Error, match=r"forbidden|unknown|not_found"):
                cursor.adbc_statement.execute_update()
    assert ask(served, "select count(*) n from shop.orders")["n"].to_pylist() == [5000]


def test_a_token_without_rights_sees_nothing(served: Served) -> None:
    with pytest.raises(adbc.Error, match="secret"):
        ask(served, "select * from secret.pay")
    for name, seen in (("reader", ["shop"]), ("admin", ["secret", "shop"])):
        with connect(served, name) as connection:
            listed = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        (catalog,) = listed
        assert [one["db_schema_name"] for one in catalog["catalog_db_schemas"]] == seen
        tables = {
            table["table_name"]: [one["column_name"] for one in table["table_columns"]]
            for schema in catalog["catalog_db_schemas"]
            for table in schema["db_schema_tables"]
        }
        assert tables["orders"] == ["id", "zone", "price"]
        assert ("pay" in tables) == (name == "admin")
    with connect(served) as connection:
        assert connection.adbc_get_table_schema("orders", db_schema_filter="shop").names == ["id", "zone", "price"]
        assert connection.adbc_get_table_types() == ["TABLE"]
        assert connection.adbc_get_info()["vendor_name"] == "Underlay"


def test_calls_without_a_valid_token_are_refused(served: Served) -> None:
    for options in (
        {},
        {DatabaseOptions.AUTHORIZATION_HEADER.value: "Bearer ul_x_y"},
        {"username": "a", "password": "b"},
    ):
        with (
            pytest.raises(adbc.Error, match=r"(?i)unauthenticated"),
            adbc.connect(f"grpc://127.0.0.1:{port_of(served)}", db_kwargs=options, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("select 1")


def test_a_user_and_a_password_are_the_token(served: Served) -> None:
    options = {"username": "token", "password": served.tokens["reader"]}
    url = f"grpc://127.0.0.1:{port_of(served)}"
    with adbc.connect(url, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("select 42 n")
        assert cursor.fetchall() == [(42,)]


def client_of(served: Served, name: str) -> tuple[flight.FlightClient, flight.FlightCallOptions]:
    header = (b"authorization", f"Bearer {served.tokens[name]}".encode())
    return flight.connect(f"grpc://127.0.0.1:{port_of(served)}"), flight.FlightCallOptions(headers=[header])


def test_a_ticket_is_good_for_its_own_token_only(served: Served) -> None:
    client, reader = client_of(served, "reader")
    _, admin = client_of(served, "admin")
    command = flight.FlightDescriptor.for_command(pack("CommandStatementQuery", bytes_field(1, "select 1 n")))
    info = client.get_flight_info(command, reader)
    assert info.total_records == 1
    (endpoint,) = info.endpoints
    assert client.do_get(endpoint.ticket, reader).read_all()["n"].to_pylist() == [1]
    for options, ticket in ((admin, endpoint.ticket), (reader, flight.Ticket(statement_ticket("st_guess")))):
        with pytest.raises((flight.FlightError, pa.ArrowException, KeyError), match="statement_not_found"):
            client.do_get(ticket, options).read_all()
    client.close()


@pytest.mark.parametrize("command", [b"", b"\xff\xff", b"\x0a\x03abc", pack("CommandStatementSubstraitPlan", b"")])
def test_what_is_no_command_is_refused(served: Served, command: bytes) -> None:
    client, options = client_of(served, "reader")
    descriptor = flight.FlightDescriptor.for_command(command)
    with pytest.raises((flight.FlightError, pa.ArrowException, NotImplementedError)):
        client.get_flight_info(descriptor, options)
    with pytest.raises((flight.FlightError, pa.ArrowException, NotImplementedError)):
        client.do_get(flight.Ticket(command), options).read_all()
    client.close()


def test_errors_say_what_is_wrong_and_where(served: Served) -> None:
    with pytest.raises(adbc.Error, match=r"line 1, column") as error:
        ask(served, "select nothing from shop.orders")
    assert "INVALID_ARGUMENT" in str(error.value) or "InvalidArgument" in str(error.value)
    assert "flight_server.py" not in str(error.value), "where the server is installed"
    with pytest.raises(adbc.Error, match="read_csv is not available"):
        ask(served, "select * from read_csv('/etc/passwd')")


def test_a_running_statement_is_cancelled(served: Served) -> None:
    slow = "select count(*) from range(100000) a, range(100000) b, range(1000) c where a.range + b.range = c.range"
    with connect(served) as connection, connection.cursor() as cursor:
        failures: list[BaseException] = []

        def run() -> None:
            try:
                cursor.execute(slow)
            except adbc.Error as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        known = served.service.known
        wait_until(lambda: any(one.request.sql == slow and one.worker is not None for one in known.values()))
        (statement,) = [one for one in known.values() if one.request.sql == slow]
        cursor.adbc_cancel()
        wait_until(lambda: statement.has_ended)
        thread.join()
    assert failures
    assert statement.state.value == "cancelled"


def test_statements_are_in_the_audit_log(served: Served) -> None:
    ask(served, "select 4711 as marked")
    text = (served.folder / "audit.ndjson").read_text()
    assert any("4711 as marked" in line and "Flight SQL" in line for line in text.splitlines())

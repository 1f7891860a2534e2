"""A registry on a PostgreSQL server: connections that drop, timeouts and locks."""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest
from sqlalchemy import insert, text

from tests.registry.database.rows import ROWS, numbers, put, settings
from tests.registry.servers import PostgresServer
from tests.store.servers import free_ports
from underlay.errors import Inconsistent, Malformed, Unavailable, UnderlayError, Unsupported
from underlay.registry.database.database import Database, open_database
from underlay.registry.database.database_errors import is_retryable
from underlay.registry.database.engine import Timeouts

# PostgreSQL


def test_a_server_killed_between_two_writes_and_started_again_is_not_noticed(
    server: Database, postgres: PostgresServer
):
    put(server, 1)
    postgres.kill()
    postgres.start()
    put(server, 2)
    assert numbers(server) == [1, 2]


def test_connections_dropped_between_two_transactions_are_not_noticed(server: Database, postgres: PostgresServer):
    with server.read(), server.read(), server.read():
        put(server, 1)
    postgres.drop_connections()
    assert numbers(server) == [1]
    put(server, 2)
    assert numbers(server) == [1, 2]


def test_a_connection_dropped_within_a_transaction_may_be_tried_again(server: Database, postgres: PostgresServer):
    def write() -> None:
        with server.write() as connection:
            connection.execute(insert(ROWS).values(id=1))
            postgres.drop_connections()
            connection.execute(insert(ROWS).values(id=2))

    with pytest.raises(Unavailable) as caught:
        write()
    assert is_retryable(caught.value)
    assert numbers(server) == []


def test_a_connection_dropped_before_the_commit_may_be_tried_again(server: Database, postgres: PostgresServer):
    def write() -> None:
        with server.write() as connection:
            connection.execute(insert(ROWS).values(id=1))
            postgres.drop_connections()

    with pytest.raises(Unavailable) as caught:
        write()
    assert is_retryable(caught.value)
    assert numbers(server) == []


def test_a_server_that_is_down_is_told_with_what_to_see_to(server: Database, postgres: PostgresServer):
    put(server, 1)
    postgres.kill()
    try:
        for _ in range(2):
            with pytest.raises(Unavailable, match="Check that the server is running") as caught:
                put(server, 2)
            assert caught.value.place == server.shown
    finally:
        postgres.start()
    assert numbers(server) == [1]


def test_opening_connects_to_nothing():
    (port,) = free_ports(1)
    database = open_database(f"postgres://ada@127.0.0.1:{port}/lake")
    assert database.is_shared
    assert database.shown == f"postgresql://ada@127.0.0.1:{port}/lake"
    with pytest.raises(Unavailable, match="refused"):
        numbers(database)


def test_a_server_is_reached_through_its_socket(postgres: PostgresServer, server: Database):
    name = server.shown.rpartition("/")[2]
    with closing(open_database(f"postgresql://postgres@/{name}?host={postgres.folder}&port={postgres.port}")) as local:
        put(local, 1)
    assert numbers(server) == [1]


@pytest.mark.parametrize(
    ("state", "kind", "may_pass"),
    [
        ("40001", Unavailable, True),
        ("40P01", Unavailable, True),
        ("55P03", Unavailable, True),
        ("57P01", Unavailable, True),
        ("53300", Unavailable, True),
        ("53100", Unavailable, False),
        ("57014", Unavailable, False),
        ("25006", Unavailable, False),
        ("42501", Unavailable, False),
        ("42P01", Inconsistent, False),
        ("23505", Inconsistent, False),
        ("XX001", Malformed, False),
        ("22003", Unsupported, False),
        ("42601", Unsupported, False),
    ],
)
def test_what_the_server_says_has_its_meaning(server: Database, state: str, kind: type[UnderlayError], may_pass: bool):
    with pytest.raises(kind, match="said so") as caught, server.write() as connection:
        connection.execute(text(f"DO $$ BEGIN RAISE SQLSTATE '{state}' USING MESSAGE = 'said so'; END $$"))
    assert type(caught.value) is kind
    assert is_retryable(caught.value) is may_pass


def test_a_locked_table_is_given_up_and_may_be_tried_again(server: Database, postgres: PostgresServer):
    with postgres.connect(server.shown.rpartition("/")[2]) as other, other.transaction():
        other.execute("LOCK TABLE rows")
        with pytest.raises(Unavailable, match="lock timeout") as caught:
            put(server, 1)
    assert is_retryable(caught.value)
    put(server, 2)


def test_a_slow_statement_is_given_up(server: Database):
    hurried = server.waiting(Timeouts(connect_s=120, lock_ms=10, statement_ms=20, pool_s=0.01))
    with closing(hurried), pytest.raises(Unavailable, match="statement timeout"), hurried.read() as connection:
        connection.execute(text("SELECT pg_sleep(60)"))


def test_a_pool_that_is_exhausted_is_given_up_and_may_be_tried_again(server: Database):
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(server.read())
        with pytest.raises(Unavailable, match="in use") as caught:
            put(server, 1)
        assert is_retryable(caught.value)
    put(server, 2)


def test_a_session_has_short_timeouts_and_a_patient_one_long_ones(server: Database):
    with closing(server.waiting(Timeouts(connect_s=2, lock_ms=250, statement_ms=2_000, pool_s=1.0))) as quick:
        assert settings(quick) == ["250ms", "2s", "underlay", "on"]
    with closing(server.patient()) as patient:
        assert settings(patient) == ["1min", "0", "underlay", "on"]


def test_parameters_of_the_url_go_to_the_server(postgres: PostgresServer, server: Database):
    name = server.shown.rpartition("/")[2]
    query = "application_name=mine&options=-c%20lock_timeout%3D7s"
    with closing(open_database(f"{postgres.url(name)}?{query}")) as database:
        lock, _, application, reads_only = settings(database)
        assert (lock, application, reads_only) == ("7s", "mine", "on")


def test_reading_writes_nothing_on_a_server(server: Database):
    with pytest.raises(Unavailable, match="read-only"), server.read() as connection:
        connection.execute(insert(ROWS).values(id=1))


def test_a_value_that_a_server_cannot_hold_is_unsupported(server: Database):
    with pytest.raises(Unsupported):
        put(server, 1, "nul \0")

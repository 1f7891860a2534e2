"""Flight SQL's port: TLS, who may listen where, and an end within a deadline."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pytest
from adbc_driver_flightsql import DatabaseOptions
from pyarrow import flight

from tests.server.conftest import PATIENCE, running, wait_until
from tests.server.flight.test_adbc import client_of, port_of
from underlay.cli.serve.run import flight_address
from underlay.errors import InvalidRequest
from underlay.server.common.settings import ServerSettings
from underlay.server.flight.commands import pack
from underlay.server.flight.protobuf import bytes_field
from underlay.server.serve import check_settings


def test_tls_is_that_of_the_server(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*command, "-keyout", key, "-out", certificate, *subject], check=True, capture_output=True)
    with running(tmp_path, flight=True, certificate=certificate, certificate_key=key) as served:
        options = {
            DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {served.tokens['reader']}",
            DatabaseOptions.TLS_ROOT_CERTS.value: certificate.read_text(),
        }
        url = f"grpc+tls://127.0.0.1:{port_of(served)}"
        with adbc.connect(url, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("select count(*) from shop.orders")
            assert cursor.fetchone() == (5000,)
        with pytest.raises((flight.FlightError, pa.ArrowException)):
            list(flight.connect(f"grpc://127.0.0.1:{port_of(served)}").do_action("CreatePreparedStatement"))


def test_a_client_that_does_not_read_does_not_keep_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("underlay.server.app._FLIGHT_SECONDS", 0.5)
    with running(tmp_path, flight=True, drain_seconds=0.5) as served:
        client, options = client_of(served, "reader")
        sql = "select range i, repeat('x', 1000) t from range(100000)"
        info = client.get_flight_info(
            flight.FlightDescriptor.for_command(pack("CommandStatementQuery", bytes_field(1, sql))), options
        )
        reader = client.do_get(info.endpoints[0].ticket, options)
        assert reader.read_chunk().data.num_rows
        served.server.should_exit = True
        thread = next(one for one in threading.enumerate() if getattr(one, "_target", None) == served.server.run)
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert isinstance(served.server.config.app.state.is_flight_stuck, bool)
        reader.cancel()
        client.close()
        wait_until(lambda: not any(one.name == "underlay-flight-end" for one in threading.enumerate()))


def test_without_tokens_only_this_machine_is_served_and_only_reads(tmp_path: Path) -> None:
    settings = ServerSettings(lake=str(tmp_path), spool=tmp_path, flight=("0.0.0.0", 1))
    with pytest.raises(InvalidRequest, match="loopback"):
        check_settings(settings)
    check_settings(ServerSettings(lake=str(tmp_path), spool=tmp_path, flight=("127.0.0.1", 1)))
    with running(tmp_path, flight=True, with_tokens=False) as served:
        url = f"grpc://127.0.0.1:{port_of(served)}"
        with adbc.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("select count(*) from secret.pay")
            assert cursor.fetchone() == (1,)
            with pytest.raises(adbc.Error, match="only reads"):
                cursor.execute("insert into shop.orders values (1, 'x', 1)")
            assert connection.adbc_get_info()["vendor_version"]


def test_the_address_is_a_port_or_an_address_with_a_port() -> None:
    assert flight_address("127.0.0.1", None, None) is None
    assert flight_address("127.0.0.1", 31337, None) == ("127.0.0.1", 31337)
    assert flight_address("127.0.0.1", None, "0.0.0.0:8815") == ("0.0.0.0", 8815)
    assert flight_address("127.0.0.1", None, "[::1]:8815") == ("::1", 8815)
    assert flight_address("127.0.0.1", 0, None) == ("127.0.0.1", 0)
    for text in ("8815", ":8815", "host:", "host:70000", "host:x"):
        with pytest.raises(InvalidRequest, match="not an address"):
            flight_address("127.0.0.1", None, text)
    with pytest.raises(InvalidRequest, match="the same"):
        flight_address("127.0.0.1", 1, "host:2")

"""TLS with a real certificate: who trusts it reads, nobody else does, and a bad one is named before the start."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import underlay.client
from tests.cli.command import underlay as cli
from tests.server.conftest import PATIENCE, Served, make_lake, running
from underlay.errors import Unavailable


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """One of its own for loopback, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, secret


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = make_certificate(folder)
    with running(folder, certificate=certificate, certificate_key=key, running=1) as one:
        yield one


def test_who_trusts_the_certificate_reads_and_nobody_reads_without_tls(
    secured: Served, monkeypatch: pytest.MonkeyPatch
):
    trusting = ssl.create_default_context(cafile=str(secured.settings.certificate))
    with httpx.Client(base_url=secured.url, verify=trusting, timeout=PATIENCE) as client:
        assert client.get("/healthz").json() == {"status": "alive"}
        same = {"Origin": secured.url, "Sec-Fetch-Site": "same-origin"}
        assert client.get("/v1/info", headers=same).status_code == 401
        plain = {"Origin": secured.url.replace("https", "http")}
        assert client.get("/v1/info", headers=plain).json()["code"] == "wrong_origin"
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{secured.url}/healthz", timeout=PATIENCE)
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{secured.url.replace('https', 'http')}/healthz", timeout=PATIENCE)
    with (
        underlay.client.connect(secured.url, secured.tokens["reader"]) as connection,
        pytest.raises(Unavailable, match="certificate"),
    ):
        connection.sql("select 1")
    monkeypatch.setenv("SSL_CERT_FILE", str(secured.settings.certificate))
    with underlay.client.connect(secured.url, secured.tokens["reader"]) as connection:
        assert connection.sql("select count(*) n from shop.orders").to_arrow()["n"].to_pylist() == [5000]


@pytest.mark.parametrize("old", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_protocols_are_refused(secured: Served, old: ssl.TLSVersion):
    context = ssl.create_default_context(cafile=str(secured.settings.certificate))
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = old
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{secured.url}/healthz", verify=context, timeout=PATIENCE)


def test_a_certificate_that_cannot_be_used_is_named_before_the_server_starts(tmp_path: Path):
    make_lake(tmp_path / "lake")
    certificate, key = make_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    _, other = make_certificate(tmp_path / "other")
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("not a certificate")
    for options in (
        ["--certificate", tmp_path / "none.pem"],
        ["--certificate", garbage],
        ["--certificate", certificate],  # the key is not in it
        ["--certificate", certificate, "--certificate-key", other],
        ["--certificate", certificate, "--certificate-key", tmp_path],
        ["--certificate-key", key],
    ):
        found = cli("serve", "--lake", tmp_path / "lake", "--engine", "duckdb", "--port", "0", *options)
        assert found.code != 0
        assert "certificate" in found.words, found.words
        assert "Traceback" not in found.words

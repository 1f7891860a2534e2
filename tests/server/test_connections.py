"""What comes in at the socket: requests that trickle or never end, that are no HTTP, and answers that nobody reads."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.server.conftest import PATIENCE, Served, wait_until

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"HTTP/1.1\r\nHost: localhost\r\n"


@contextmanager
def limited(served: Served, **limits: float) -> Iterator[None]:
    """The server gives new connections other limits."""
    state = served.server.config.app.state
    kept = state.settings
    state.settings = replace(kept, limits=replace(kept.limits, **limits))
    try:
        yield
    finally:
        state.settings = kept


@contextmanager
def connected(served: Served) -> Iterator[socket.socket]:
    place = urlsplit(served.url)
    with socket.create_connection((place.hostname, place.port), PATIENCE) as one:
        yield one


def answer(served: Served, sent: bytes) -> bytes:
    """The first answer, or what comes until the server ends the connection."""
    found = b""
    with connected(served) as one, suppress(ConnectionError):  # it may end before all is sent
        with suppress(ConnectionError):
            one.sendall(sent)
        while part := one.recv(1 << 16):
            found += part
            head, end, body = found.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            if end and (sent.startswith(b"HEAD") or (length and len(body) >= int(length[1]))):
                break
    return found


def everything(one: socket.socket) -> bytes:
    found = bytearray()
    try:
        while part := one.recv(1 << 16):
            found += part
    except ConnectionResetError:
        pass
    return bytes(found)


@pytest.mark.parametrize(
    "begun",
    [
        b"G",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ",
        GET + b"GET /healthz",
        b"POST /v1/sql " + HEAD + b"Content-Length: 1000\r\n\r\n" + b'{"sql": ',
        b"POST /v1/sql " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"POST /v1/sql " + HEAD + b"Content-Length: 10\r\nExpect: 100-continue\r\n\r\n",
    ],
)
def test_a_request_that_does_not_go_on_is_given_up(served: Served, begun: bytes):
    token = b"Authorization: Bearer " + served.tokens["reader"].encode() + b"\r\n"
    with limited(served, head_seconds=0.05, body_seconds=0.05), connected(served) as slow:
        slow.sendall(begun.replace(HEAD, HEAD + token))
        everything(slow)  # it ends


def test_a_body_that_trickles_is_given_up(served: Served):
    token = b"Authorization: Bearer " + served.tokens["reader"].encode() + b"\r\n"
    with limited(served, body_seconds=0.05), connected(served) as slow:
        slow.sendall(b"POST /v1/sql " + HEAD + token + b"Content-Length: 1000000\r\n\r\n")
        slow.settimeout(0.01)
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            _trickle(slow)


def _trickle(slow: socket.socket) -> None:
    for _ in range(100_000):
        slow.sendall(b" ")
        try:
            if slow.recv(1) == b"":
                raise ConnectionResetError("reset")
        except TimeoutError:
            continue


def test_an_answer_that_nobody_reads_is_given_up(served: Served):
    """Its statement ends at once, and its connection does not wait for the rest to be read."""
    asked = b"GET /v1/sql?query=select%20repeat('x'%2C1000)%20from%20range(1000000)&format=csv " + HEAD
    token = b"Authorization: Bearer " + served.tokens["reader"].encode() + b"\r\n\r\n"
    with limited(served, idle_write_seconds=0.3), connected(served) as slow:
        slow.sendall(asked + token)
        assert slow.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: served.service.turns.running == 0)
        wait_until(lambda: not open_connections(served))


def open_connections(served: Served) -> set[object]:
    return served.server.server_state.connections


def test_more_connections_than_there_may_be_are_told_so(served: Served):
    wait_until(lambda: not open_connections(served))
    with limited(served, connections=1), connected(served) as first, connected(served) as second:
        refused = everything(second)
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"too_many_connections" in refused
        assert b"retry-after: 1" in refused
        first.sendall(GET)
        assert first.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A : b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\x00c\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"POST /v1/sql " + HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /v1/sql " + HEAD + b"Content-Length: -1\r\n\r\n",
        b"POST /v1/sql " + HEAD + b"Content-Length: 1, 1, 2\r\n\r\n",
        b"POST /v1/sql " + HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST /v1/sql " + HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\nHost: evil.example\n\n",
    ],
)
def test_what_is_not_http_is_refused_and_ends_the_connection(served: Served, sent: bytes):
    refused = answer(served, sent)
    assert refused.startswith(tuple(b"HTTP/1.1 %d" % status for status in (400, 421, 431, 501))) or not refused


def test_requests_may_come_before_answers(served: Served):
    with connected(served) as one:
        one.sendall(GET * 3 + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + GET)
        assert everything(one).count(b"HTTP/1.1 200") == 4


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET http://evil.example/healthz", 404),
        (b"GET //healthz", 404),
        (b"GET /v1/../healthz", 404),
        (b"GET /v1/tables/%2e%2e%2fetc%2fpasswd", 404),
        (b"GET /healthz%00", 404),
        (b"GET /%ff%fe", 404),
        (b"GET /healthz;x=1", 404),
        (b"GET *", 404),
        (b"OPTIONS *", 404),
        (b"CONNECT evil.example:80", 404),
        (b"TRACE /healthz", 405),
        (b"OPTIONS /v1/sql", 405),
        (b"PUT /v1/sql", 405),
        (b"HEAD /healthz", 200),
        (b"BREW /healthz", 405),
        (b"GET /v1/sql/", 404),
        (b"GET /docs", 404),
    ],
)
def test_paths_and_methods_lead_where_they_say_or_nowhere(served: Served, line: bytes, status: int):
    found = answer(served, line + b" " + HEAD + b"Connection: close\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 %d" % status), found[:300]
    head, _, body = found.partition(b"\r\n\r\n")
    assert b"content-security-policy" in head
    assert (b"\r\nallow: " in head) == (status == 405)
    assert b"Traceback" not in body
    assert line[:4] != b"HEAD" or not body


@pytest.mark.parametrize(
    "headers",
    [
        b"Origin: http://localhost\r\nOrigin: http://evil.example\r\n",
        b"Origin: http://evil.example\r\nOrigin: http://localhost\r\n",
        b"Origin: \r\n",
        b"Origin: file://\r\n",
        b"Origin: http://localhost.evil.example\r\n",
        b"Origin: http://localhost:1\r\n",
        b"Sec-Fetch-Site: Cross-Site\r\n",
        b"Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n",
    ],
)
def test_a_page_of_another_site_is_refused_however_it_says_so(served: Served, headers: bytes):
    found = answer(served, b"GET /healthz " + HEAD + headers + b"\r\n")
    assert found.startswith(b"HTTP/1.1 403"), found[:200]


@pytest.mark.parametrize(
    "host", [b"", b"evil.example", b"localhost.evil.example", b"localhost@evil.example", b"[::1", b"local\xffhost"]
)
def test_a_host_that_is_not_the_servers_is_refused(served: Served, host: bytes):
    found = answer(served, b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    assert found.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400")), found[:200]


@pytest.mark.parametrize(
    "body",
    [
        b'{"sql": "select 1", "sql": "select 2"}',
        b'{"sql": "select $a", "parameters": {"a": 1, "a": 2}}',
        b'{"sql": "select ?", "parameters": [NaN]}',
        b'{"sql": "select ?", "parameters": [Infinity]}',
        b'{"sql": "select ?", "parameters": [1e999]}',
        b'{"sql": "select 1", "timeout": 1e400}',
        b'{"sql": "select 1", "wait": "10"}',
        b'{"sql": "select 1", "limit": true}',
        b'{"sql": "select 1", "limit": 1.5}',
        b'{"sql": "select ?", "parameters": [' + b"9" * 10_000 + b"]}",
        b'{"sql": ["select 1"]}',
        b'{"sql": null}',
        b'{"sql": "select 1", "token": "x"}',
        b'{"sql": "select 1", "spool": "/etc/passwd"}',
        b'{"sql": "select 1\\u0000; select 2"}',
        b'\xef\xbb\xbf{"sql": "select 1"}',
        b'{"sql": "select 1"}{"sql": "select 2"}',
        b'{"sql": "select 1",}',
        b"{'sql': 'select 1'}",
        b"\xff\xfe{\x00",
        b"[" * 100_000,
        b"",
        b"null",
    ],
)
def test_a_body_that_says_two_things_or_nothing_is_refused(served: Served, body: bytes):
    with served.client() as client:
        found = client.post("/v1/sql", content=body)
    assert (found.status_code, found.headers["content-type"]) == (400, "application/problem+json"), found.text

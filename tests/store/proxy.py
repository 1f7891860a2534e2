"""An HTTP proxy before a store that loses, refuses or changes requests: faults that happen on the wire."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread


@dataclass(frozen=True)
class Answer:
    """Answer by oneself; the request goes nowhere."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class Forward:
    """Pass the request on and the response back."""


@dataclass(frozen=True)
class ForwardWithout:
    """Pass the request on without one of its headers."""

    header: str


class DropRequest:
    """Close the connection; the request goes nowhere."""


class DropResponse:
    """Pass the request on, then close the connection."""


class Silence:
    """Pass the request on, then say nothing until the proxy ends."""


Action = Answer | Forward | ForwardWithout | DropRequest | DropResponse | Silence
Seen = tuple[str, str, Mapping[str, str]]
"""Method, path and headers of a request."""


class Proxy:
    """Does what `choose` says with each request to it, and remembers them all."""

    def __init__(self, endpoint: str, upstream: str, choose: Callable[[Seen], Action]) -> None:
        self.endpoint = endpoint
        self.upstream = upstream.removeprefix("http://")
        self.choose = choose
        self.seen: list[Seen] = []
        self.passed_on = Event()
        """A request was passed on whose answer nobody hears."""
        self.ended = Event()
        self.lock = Lock()


@contextmanager
def proxy(upstream: str, choose: Callable[[Seen], Action] | list[Action]) -> Iterator[Proxy]:
    """A proxy to `upstream`. A list is what happens to PUT requests in turn; all else is passed on."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    front = Proxy(
        f"http://127.0.0.1:{server.server_port}", upstream, choose if callable(choose) else in_turn(iter(choose))
    )
    server.proxy = front  # type: ignore[attr-defined]  # the handler finds it on its server
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield front
    finally:
        front.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def in_turn(actions: Iterator[Action]) -> Callable[[Seen], Action]:
    return lambda seen: next(actions, Forward()) if seen[0] == "PUT" else Forward()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(60)

    def _serve(self) -> None:
        front: Proxy = self.server.proxy  # type: ignore[attr-defined]  # set by proxy()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seen = (self.command, self.path, dict(self.headers))
        with front.lock:
            front.seen.append(seen)
            action = front.choose(seen)
        if isinstance(action, Answer):
            return self._answer(action.status, action.body.encode(), action.headers)
        if isinstance(action, DropRequest):
            self.close_connection = True
            return None
        without = action.header.lower() if isinstance(action, ForwardWithout) else None
        headers = {name: value for name, value in self.headers.items() if name.lower() != without}
        upstream = http.client.HTTPConnection(front.upstream, timeout=60)
        try:
            upstream.request(self.command, self.path, body, headers)
            response = upstream.getresponse()
            data = response.read()
        finally:
            upstream.close()
        if isinstance(action, Silence):
            front.passed_on.set()
            front.ended.wait(240)
        if isinstance(action, DropResponse | Silence):
            self.close_connection = True
            return None
        return self._answer(response.status, data, dict(response.getheaders()))

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)
        hop = {"transfer-encoding", "connection", "content-length"}
        for name, value in headers.items():
            if name.lower() not in hop:
                self.send_header(name, value)
        size = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", size)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815  # names that http.server looks for

    def log_message(self, format: str, *args: object) -> None:
        pass

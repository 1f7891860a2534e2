"""A reverse proxy that puts a path before the server's and takes it away again, as nginx does with a slash."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_OWN = frozenset(("connection", "keep-alive", "transfer-encoding"))
_TIMEOUT_SECONDS = 300


@contextmanager
def proxied(url: str, path: str) -> Iterator[str]:
    """The URL of the server by way of the proxy, below the path. What is not below it is not found."""
    upstream = urlsplit(url).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            if not self.path.startswith(f"{path}/"):
                self.send_error(404)
                return
            length = int(self.headers.get("content-length", 0))
            connection = HTTPConnection(upstream, timeout=_TIMEOUT_SECONDS)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
            connection.request(self.command, self.path.removeprefix(path), self.rfile.read(length), headers)
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {*_OWN, "content-length"}:
                    self.send_header(name, value)
            self.send_header("content-length", answer.getheader("content-length") or str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        do_GET = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815  # names that http.server looks for

        def log_message(self, *_: object) -> None:
            """Not into the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{path}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

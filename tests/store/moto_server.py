"""moto's server with writes one after the other: `python moto_server.py PORT`.

moto looks whether a key is there and puts it in two steps, so that on a busy machine two conditional writes of one key
may both be done. S3's are atomic.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from threading import Lock
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

READS = ("GET", "HEAD")


class WritesInTurn:
    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._turn = Lock()

    def __call__(self, environment: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        if environment["REQUEST_METHOD"] in READS:
            return self._moto(environment, respond)
        with self._turn:
            return self._moto(environment, respond)


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), WritesInTurn(), threaded=True, request_handler=MotoRequestHandler)

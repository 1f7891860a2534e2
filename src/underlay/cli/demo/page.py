"""Serves the demo's lake: starts `underlay serve`, and asks it for the page and for rows."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from underlay.client import connect
from underlay.errors import Inconsistent, Unavailable

PORT = 8080
_ADDRESS = re.compile(r"on (http://\S+), Ctrl-C")
_END_SECONDS = 60
_START_SECONDS = 300
_LIBRARIES = ("fastapi", "uvicorn")


def can_serve() -> bool:
    """Whether the server's libraries are installed."""
    return all(find_spec(library) is not None for library in _LIBRARIES)


def is_free(port: int) -> bool:
    """Whether nothing listens on the port of loopback."""
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


@contextmanager
def serving(lake: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server of the lake, its address and its process. It ends with the block. Port 0 is any free one."""
    command = [sys.executable, "-m", "underlay", "serve", "--lake", str(lake), "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield _address(server), server
        finally:
            server.terminate()
            try:
                server.wait(_END_SECONDS)
            finally:
                server.kill()


def _address(server: subprocess.Popen[str]) -> str:
    said = ""
    for line in server.stderr or ():
        said += line
        found = _ADDRESS.search(line)
        if found is not None:
            return found[1]
    raise Unavailable(f"the server did not start: {said.strip()}")


def has_page(url: str) -> bool:
    """Whether the server sends the page; in a checkout it may not be built."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=_START_SECONDS)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    return answer.status == 200


def check_count(url: str, table: str, expected: int) -> None:
    """Raises Inconsistent unless the server counts as many rows in the table."""
    with connect(url) as connection:
        rows = connection.sql(f"select count(*) as n from {table}").to_arrow()
    if rows["n"].to_pylist() != [expected]:
        raise Inconsistent("the server answers otherwise", place=table, expected=expected, found=rows["n"].to_pylist())


def keep_open(server: subprocess.Popen[str]) -> None:
    """Pass on what the server says until it ends or is interrupted."""
    try:
        for line in server.stderr or ():
            print(line, end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        server.terminate()

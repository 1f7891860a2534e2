"""Runs the application on a socket until it is told to stop, then waits for running statements."""

from __future__ import annotations

import ipaddress
import logging
import re
import resource
import socket
import ssl
from types import FrameType

import uvicorn

from underlay.errors import InvalidRequest, Unavailable
from underlay.server.access.guard import HEADER_BYTES
from underlay.server.access.slow_connections import BoundedProtocol
from underlay.server.app import make_app
from underlay.server.common.log_lines import is_no_cut, json_logging
from underlay.server.common.settings import ServerSettings

LOG_FORMATS = ("text", "json")
_KEPT_ALIVE_SECONDS = 75
_ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")


class DrainingServer(uvicorn.Server):
    """A server that refuses new statements once it is told to stop."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM and Ctrl-C: the first one starts to drain."""
        service = getattr(self.config.app.state, "service", None)  # type: ignore[union-attr]  # our application
        if service is not None:
            service.is_draining = True
        super().handle_exit(sig, frame)


def check_settings(settings: ServerSettings) -> None:
    """Raise InvalidRequest for settings that would let strangers in, or cannot work."""
    addresses = [settings.host] if settings.flight is None else [settings.host, settings.flight[0]]
    reachable = [address for address in addresses if not is_loopback(address)]
    if settings.tokens is None and reachable:
        raise InvalidRequest(
            "a server without tokens listens on loopback only",
            found=reachable[0],
            hint='Give --tokens FILE, and make one with "underlay token create".',
        )
    if settings.log_format not in LOG_FORMATS:
        raise InvalidRequest("unknown --log-format", expected=", ".join(LOG_FORMATS), found=settings.log_format)
    if settings.root_path and not _ROOT_PATH.fullmatch(settings.root_path):
        raise InvalidRequest(
            "--root-path is not a path that a proxy could put before the server's",
            expected="such as /sql: a slash first, none at the end",
            found=settings.root_path,
        )
    _check_certificate(settings)
    if settings.tokens is None and settings.is_writable:
        raise InvalidRequest(
            "a server without tokens only reads",
            hint='Give --tokens FILE with --writable, and make one with "underlay token create NAME --write DATASET".',
        )


def _check_certificate(settings: ServerSettings) -> None:
    certificate, key = settings.certificate, settings.certificate_key
    if certificate is None:
        if key is not None:
            raise InvalidRequest("--certificate-key without --certificate", hint="Give both, or one file with both.")
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # an SSLError is one
        raise InvalidRequest(
            f"the certificate and its key cannot be used: {error.strerror or error}",
            place=str(certificate) if key is None else f"{certificate}, {key}",
            expected="PEM files that belong together",
            hint="Give the key by --certificate-key, or have both in one file.",
        ) from None


def make_server(settings: ServerSettings) -> DrainingServer:
    """The server, not yet running. Raises InvalidRequest."""
    check_settings(settings)
    logging.getLogger("uvicorn.error").addFilter(is_no_cut)
    seconds = settings.limits.drain_seconds
    return DrainingServer(
        uvicorn.Config(
            make_app(settings),
            host=settings.host,
            port=settings.port,
            http=BoundedProtocol,
            ws="none",
            lifespan="on",
            server_header=False,
            date_header=True,
            access_log=False,
            log_config=json_logging() if settings.log_format == "json" else uvicorn.config.LOGGING_CONFIG,
            log_level="warning",
            proxy_headers=False,
            h11_max_incomplete_event_size=2 * HEADER_BYTES,
            timeout_keep_alive=_KEPT_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(seconds) + 1,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.certificate_key,
        )
    )


def allow_connections(settings: ServerSettings) -> None:
    """Raise the limit of open files to one for each allowed connection; shells give a process 1,024 in all."""
    least = settings.limits.connections + 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = least if hard == resource.RLIM_INFINITY else min(least, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def bind(settings: ServerSettings) -> socket.socket:
    """The socket to listen on; port 0 picks a free one. Raises Unavailable."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listening = socket.create_server((settings.host.strip("[]"), settings.port), family=family, backlog=2048)
    except OSError as error:
        raise Unavailable(
            f"cannot listen: {error.strerror or error}", place=f"{settings.host}:{settings.port}"
        ) from None
    # asyncio does this only for sockets that it made; without it an answer in two parts waits 40 ms for a delayed ACK
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

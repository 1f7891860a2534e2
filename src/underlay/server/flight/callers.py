"""Who calls: the bearer token of a call, or a user `token` with the token as its password."""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pyarrow import flight

from underlay.errors import UnderlayError
from underlay.server.access.tokens import ANONYMOUS, AccessToken, TokenFile

MIDDLEWARE = "caller"
_log = logging.getLogger(__name__)
_HEADER = "authorization"


class Caller(flight.ServerMiddleware):
    """The caller of one call. One who gave a password gets the bearer header to send from then on."""

    def __init__(self, token: AccessToken, bearer: str | None) -> None:
        self.token = token
        self._bearer = bearer

    def sending_headers(self) -> dict[str, list[str] | list[bytes]]:
        """See ServerMiddleware."""
        return {} if self._bearer is None else {_HEADER: [f"Bearer {self._bearer}"]}


class Callers(flight.ServerMiddlewareFactory):
    """Finds the caller of each call; without tokens everybody is anonymous."""

    def __init__(self, tokens: TokenFile | None) -> None:
        self._tokens = tokens

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, Sequence[str | bytes]]) -> Caller:
        """See ServerMiddlewareFactory. Raises FlightUnauthenticatedError, FlightUnavailableError."""
        if self._tokens is None:
            return Caller(ANONYMOUS, None)
        given = next((values for name, values in headers.items() if name.lower() == _HEADER and values), None)
        text = "" if given is None else given[0].decode() if isinstance(given[0], bytes) else given[0]
        kind, _, value = text.partition(" ")
        is_basic = kind.lower() == "basic"
        secret = _password(value) if is_basic else value.strip() if kind.lower() == "bearer" else ""
        if not secret:
            raise flight.FlightUnauthenticatedError(
                "the call has no token: send it as a bearer, or as the password of the user token"
            )
        try:
            found = self._tokens.find(secret, datetime.now(UTC))
        except UnderlayError as error:  # its text names the token file's path, which is none of a stranger's business
            _log.error("%s", error)
            raise flight.FlightUnavailableError("the server cannot read its tokens") from None
        if found is None:
            raise flight.FlightUnauthenticatedError("the token is not valid")
        return Caller(found, secret if is_basic else None)


def _password(value: str) -> str:
    """The password of a user; Go's clients leave the padding out."""
    plain = value.strip().rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


class NoHandshake(flight.ServerAuthHandler):
    """The handshake of JDBC: who calls is in the headers, so there is nothing to exchange."""

    def authenticate(self, outgoing: object, incoming: object) -> None:
        """Nothing."""

    def is_valid(self, token: bytes) -> bytes:  # type: ignore[override]  # the stubs have it wrong
        """Everybody: the middleware has checked the headers."""
        return b""

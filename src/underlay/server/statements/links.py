"""Links that download a kept result once, without a token."""

from __future__ import annotations

import secrets
from time import monotonic

from underlay.server.formats.formats import ResultFormat
from underlay.server.statements.statement import RunStatement

LINK_SECONDS = 60.0
_MOST = 1000


class DownloadLinks:
    """Secrets in URLs, each good for one download within a minute. Only the newest are kept."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[RunStatement, ResultFormat, float]] = {}

    def make(self, statement: RunStatement, format: ResultFormat) -> str:
        """A new secret."""
        now = monotonic()
        self._known = {secret: one for secret, one in self._known.items() if one[2] > now}
        while len(self._known) >= _MOST:
            self._known.pop(next(iter(self._known)))
        secret = secrets.token_urlsafe(24)
        self._known[secret] = (statement, format, now + LINK_SECONDS)
        return secret

    def take(self, secret: str) -> tuple[RunStatement, ResultFormat] | None:
        """What a secret stands for, once; None when it was used or has expired."""
        found = self._known.pop(secret, None)
        return None if found is None or found[2] < monotonic() else found[:2]

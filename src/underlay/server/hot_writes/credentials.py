"""The secret in a request, as clients of InfluxDB and QuestDB send it.

| sent | by |
|---|---|
| `Authorization: Bearer SECRET` | QuestDB's `token` |
| `Authorization: Token SECRET` | InfluxDB's `token` |
| `Authorization: Basic …` with SECRET as the password | QuestDB's and InfluxDB 1's user and password |
| the cookie of `/api/v2/signin` | InfluxDB 2's user and password |

The user's name says nothing: a token has its rights.
"""

from __future__ import annotations

import base64
import binascii
from http.cookies import CookieError, SimpleCookie

from starlette.requests import Request

COOKIE = "underlay-session"


def secret_of(request: Request) -> str | None:
    """The secret; None if there is none that can be read."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    match kind.lower():
        case "bearer" | "token":
            return text.strip() or None
        case "basic":
            return _password(text.strip())
        case "":
            return _cookie(request.headers.get("cookie", ""))
    return None


def _password(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode().partition(":")[2] or None
    except (binascii.Error, UnicodeDecodeError):
        return None


def _cookie(text: str) -> str | None:
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value or None

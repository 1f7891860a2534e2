"""Access tokens, which name callers and give them rights. The file keeps their hashes, and is read again when it
changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from underlay.errors import InvalidRequest, NotFound, from_os_error
from underlay.server.access.rights import Rights

PREFIX = "ul"
_ID_BYTES = 6
_SECRET_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """What the server knows about a token: everything but its secret."""

    id: str
    name: str
    digest: str
    rights: Rights
    created: datetime
    expires: datetime | None = None

    def is_expired(self, now: datetime) -> bool:
        """Whether the token has expired."""
        return self.expires is not None and now >= self.expires

    def as_json(self) -> dict[str, object]:
        """As the file has it."""
        return {
            "id": self.id,
            "name": self.name,
            "sha256": self.digest,
            "read": list(self.rights.read),
            "write": list(self.rights.write),
            "admin": self.rights.is_admin,
            "created": self.created.isoformat(),
            "expires": None if self.expires is None else self.expires.isoformat(),
        }


ANONYMOUS = AccessToken(
    id="anonymous",
    name="anonymous",
    digest="",
    rights=Rights(read=("*",)),
    created=datetime(1970, 1, 1, tzinfo=UTC),
)
"""The caller on a loopback server without tokens."""


class TokenFile:
    """The tokens of a server. Safe for concurrent processes; each change replaces the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._known: dict[str, AccessToken] = {}

    def find(self, text: str, now: datetime) -> AccessToken | None:
        """The token with this secret, None for a wrong, unknown or expired one.

        Raises InvalidRequest when the file cannot be read.
        """
        prefix, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        token = self._current().get(id)
        digest = hash_secret(secret)
        is_right = hmac.compare_digest(digest, token.digest if token is not None else hash_secret(""))
        if prefix != PREFIX or token is None or not is_right or token.is_expired(now):
            return None
        return token

    def every(self) -> list[AccessToken]:
        """All tokens, oldest first."""
        return sorted(self._current().values(), key=lambda one: one.created)

    def create(
        self, name: str, rights: Rights, now: datetime, expires: datetime | None = None
    ) -> tuple[AccessToken, str]:
        """A new token, and the secret text that its owner sends, which cannot be recovered later. Raises
        InvalidRequest.
        """
        if not name or len(name) > 100 or not name.isprintable():
            raise InvalidRequest("a token needs a name of at most 100 printable characters", found=repr(name)[:120])
        secret = secrets.token_hex(_SECRET_BYTES)
        with self._changing() as known:
            if any(one.name == name for one in known.values()):
                raise InvalidRequest("a token has this name already", found=name, hint="Revoke it, or choose another.")
            id = secrets.token_hex(_ID_BYTES)
            token = AccessToken(
                id=id, name=name, digest=hash_secret(secret), rights=rights, created=now, expires=expires
            )
            known[id] = token
        return token, f"{PREFIX}_{id}_{secret}"

    def revoke(self, name: str) -> AccessToken:
        """Take away the token with this name or id. Raises NotFound."""
        with self._changing() as known:
            found = next((one for one in known.values() if name in (one.name, one.id)), None)
            if found is None:
                raise NotFound("there is no such token", place=str(self._path), found=name)
            del known[found.id]
        return found

    def _current(self) -> Mapping[str, AccessToken]:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise from_os_error(error, str(self._path)) from None
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp != self._stamp:
            self._known = self._read()
            self._stamp = stamp
        return self._known

    def _read(self) -> dict[str, AccessToken]:
        try:
            listed: Any = json.loads(self._path.read_bytes())  # Any: JSON
            found = [_token_of(one) for one in listed["tokens"]]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise from_os_error(error, str(self._path)) from None
        except (ValueError, KeyError, TypeError):
            raise InvalidRequest(
                "the file does not hold tokens", place=str(self._path), hint='Make one with "underlay token create".'
            ) from None
        return {one.id: one for one in found}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, AccessToken]]:
        """The tokens, to be changed: at the end of the block they replace the file's. One process at a time."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self._read()
            yield known
            text = json.dumps({"tokens": [one.as_json() for one in known.values()]}, indent=1)
            other = f"{self._path}.{secrets.token_hex(4)}"
            file = os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "w") as stream:
                stream.write(f"{text}\n")
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(other, self._path)
        finally:
            os.close(lock)


def hash_secret(secret: str) -> str:
    """The hash that the file keeps. A secret has 192 random bits, so a plain hash is enough."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _token_of(known: Mapping[str, Any]) -> AccessToken:  # Any: JSON
    expires = known["expires"]
    return AccessToken(
        id=known["id"],
        name=known["name"],
        digest=known["sha256"],
        rights=Rights(read=tuple(known["read"]), write=tuple(known["write"]), is_admin=bool(known["admin"])),
        created=datetime.fromisoformat(known["created"]),
        expires=None if expires is None else datetime.fromisoformat(expires),
    )

"""Runs `underlay token`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from underlay.cli.common.output import print_json, print_table, say
from underlay.errors import InvalidRequest
from underlay.server.access.rights import Rights, check_names
from underlay.server.access.tokens import AccessToken, TokenFile
from underlay.values.duration import read_duration

VARIABLE = "UNDERLAY_TOKENS"


def tokens_path(given: str | None) -> Path:
    """The path of the token file: as given, else from the environment, else in the user's state directory."""
    named = given or os.environ.get(VARIABLE)
    if named:
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "underlay" / "tokens.json"


def create_token(
    path: str | None,
    name: str,
    *,
    read: Sequence[str],
    write: Sequence[str],
    admin: bool,
    expires: str | None,
    json: bool,
) -> None:
    """Create a token, and print it on stdout."""
    rights = Rights(read=check_names(read, "--read"), write=check_names(write, "--write"), is_admin=admin)
    if not rights.read and not rights.write and not admin:
        raise InvalidRequest("the token would have no rights", hint="Give --read, --write or --admin.")
    now = datetime.now(UTC)
    until = None if expires is None else now + read_duration(expires, "--expires")
    where = tokens_path(path)
    made, text = TokenFile(where).create(name, rights, now, until)
    if json:
        print_json({**_shown(made), "token": text})
        return
    say(f"Token {name} is in {where}. It is printed this once:")
    print(text)


def list_tokens(path: str | None, *, json: bool) -> None:
    """Print all tokens, without their hashes."""
    found = TokenFile(tokens_path(path)).every()
    if json:
        for one in found:
            print_json(_shown(one))
        return
    rows = [
        (
            one.name,
            one.id,
            ", ".join(one.rights.read),
            ", ".join(one.rights.write),
            "yes" if one.rights.is_admin else "",
            "never" if one.expires is None else one.expires.isoformat(timespec="seconds"),
        )
        for one in found
    ]
    print_table(("name", "id", "read", "write", "admin", "expires"), rows)


def revoke_token(path: str | None, name: str) -> None:
    """Revoke a token."""
    say(f"Token {TokenFile(tokens_path(path)).revoke(name).name} is revoked.")


def _shown(token: AccessToken) -> dict[str, object]:
    return {name: value for name, value in token.as_json().items() if name != "sha256"}

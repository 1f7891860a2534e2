"""Asks an Iceberg REST catalog for a table: two requests, `config` and the table."""

from __future__ import annotations

import json
import os
import re
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from underlay.errors import Forbidden, InvalidRequest, Malformed, NotFound, Unavailable

TOKEN = "UNDERLAY_ICEBERG_TOKEN"
"""The variable with the bearer token of the catalog."""
_ADDRESS = re.compile(r"(?:(https?):)?//([^/]+)((?:/[^/]+)*)/([^/]+)")
_SECONDS = 60.0
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def load_table(address: str) -> tuple[bytes, str]:
    """The metadata of a table at `//host:port/path/namespace.table`, and where it lies.

    Over https, unless the address says `http:` or the host is this machine.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or "." not in match[4]:
        raise InvalidRequest(
            "not the address of a table in a REST catalog",
            found=f"iceberg+rest:{address}",
            expected="iceberg+rest://host:port/namespace.table",
        )
    host = match[2].rpartition(":")[0] if re.search(r":[0-9]+$", match[2]) else match[2]
    scheme = match[1] or ("http" if host in _LOOPBACK else "https")
    base = f"{scheme}://{match[2]}{match[3]}/v1"
    config = _ask(f"{base}/config")
    settings = {**(config.get("defaults") or {}), **(config.get("overrides") or {})}
    prefix = f"/{settings['prefix']}" if settings.get("prefix") else ""
    *levels, table = match[4].split(".")
    namespace = quote("\x1f".join(levels), safe="")
    found = _ask(f"{base}{prefix}/namespaces/{namespace}/tables/{quote(table, safe='')}")
    metadata = found.get("metadata")
    if not isinstance(metadata, dict):
        raise Malformed("the catalog's answer has no metadata", place=base)
    return json.dumps(metadata, sort_keys=True).encode(), str(found.get("metadata-location") or base)


def _ask(url: str) -> dict[str, Any]:
    token = os.environ.get(TOKEN)
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urlopen(Request(url, headers=headers), timeout=_SECONDS) as answer:
            found = json.loads(answer.read())
    except HTTPError as error:
        raise _refused(error, url) from None
    except (URLError, OSError, HTTPException) as error:
        raise Unavailable(f"the catalog does not answer: {error}", place=url) from None
    except ValueError as error:
        raise Malformed(f"the catalog's answer is not JSON: {error}", place=url) from None
    if not isinstance(found, dict):
        raise Malformed("the catalog's answer is not an object", place=url)
    return found


def _refused(error: HTTPError, url: str) -> Exception:
    if error.code == 404:
        return NotFound("the catalog has no such table", place=url)
    if error.code in (401, 403):
        return Forbidden("the catalog refuses", place=url, found=error.code, hint=f"Give its token in {TOKEN}.")
    return Unavailable(f"the catalog answered {error.code}", place=url)

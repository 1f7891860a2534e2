"""The files of the built page, in memory: only these can be asked for, so that no path leads anywhere else.

Vite puts a hash of the content into the names of all assets, so browsers may keep them for ever; `index.html` names the
current ones. The build compresses each asset once, by brotli and gzip.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "built"
INDEX = "index.html"
LICENSES = "licenses.txt"
NONCE = b"NONCE-OF-THIS-ANSWER"
"""What `web/vite.config.ts` writes where a nonce belongs."""

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_ENCODINGS = {".br": "br", ".gz": "gzip"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file of the page."""

    media_type: str
    etag: str
    is_hashed: bool
    """Its name changes with its content."""
    bodies: Mapping[str | None, bytes]
    """By content encoding; None is the plain file."""


def read_page(folder: Path = FOLDER) -> dict[str, PageFile]:
    """The page's files by their paths; empty where the page is not built."""
    if not (folder / INDEX).is_file():
        return {}
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in _MEDIA_TYPES and path.is_file()]
    return {path.relative_to(folder).as_posix(): _read(path, folder) for path in paths}


def _read(path: Path, folder: Path) -> PageFile:
    plain = path.read_bytes()
    packed = {encoding: path.with_name(path.name + suffix) for suffix, encoding in _ENCODINGS.items()}
    return PageFile(
        media_type=_MEDIA_TYPES[path.suffix],
        etag=f'"{hashlib.sha256(plain).hexdigest()[:32]}"',
        is_hashed=path.relative_to(folder).parts[0] == "assets",
        bodies={None: plain, **{name: packing.read_bytes() for name, packing in packed.items() if packing.is_file()}},
    )


def with_nonce(index: bytes) -> tuple[bytes, str]:
    """`index.html` with a nonce of its own, and the policy that names it.

    CodeMirror adds style elements, which need the nonce; there are no inline scripts, and no addresses but our own.
    """
    nonce = secrets.token_urlsafe(18)
    policy = (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self'; font-src 'self'; "
        f"style-src 'self' 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return index.replace(NONCE, nonce.encode()), policy

"""Which directory the URL of a local store names."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit


def local_root(url: str) -> Path | None:
    """The directory of a local store's URL, None for any other store."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def is_same_directory(url: str, other: str) -> bool:
    """Whether two URLs name one local store, one of them perhaps by a link or `..`."""
    root, other_root = local_root(url), local_root(other)
    return root is not None and other_root is not None and os.path.realpath(root) == os.path.realpath(other_root)

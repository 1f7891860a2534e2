"""What other engines call the objects of a lake: absolute URLs, as they are and not quoted."""

from __future__ import annotations

from urllib.parse import unquote

from underlay.errors import InvalidRequest
from underlay.index.keys import RevisionKeys, plain_location

_FILE = "file://"
_NEEDS_BASE = {"memory": "the lake is in the memory of this process", "az": "the URL does not name the account"}


class ExportPlaces:
    """URLs of a lake's objects, below `base_url` or the lake's own URL."""

    def __init__(self, lake_url: str, base_url: str | None) -> None:
        scheme, separator, _ = (base_url or lake_url).partition("://")
        if base_url is None and scheme in _NEEDS_BASE:
            raise InvalidRequest(
                f"other engines cannot find the files: {_NEEDS_BASE[scheme]}",
                place=lake_url,
                hint="Say what they call the lake's folder: --base-url abfss://container@account.dfs.core.windows.net/lake.",
            )
        if not separator:
            raise InvalidRequest(
                "the base URL has no scheme", found=base_url, hint="Write s3://bucket/lake or file:///data/lake."
            )
        self.base = unquoted(base_url or lake_url).rstrip("/") if base_url is None else base_url.rstrip("/")

    def of_key(self, key: str) -> str:
        """The URL of an object of the lake."""
        return f"{self.base}/{key}"

    def of_file(self, keys: RevisionKeys, location: str) -> str:
        """The URL of a file of the revision with these keys."""
        key = keys.file(location)
        return self.of_key(key) if key is not None else unquoted(plain_location(location))


def unquoted(url: str) -> str:
    """A URL as engines read it: only local ones are quoted in ours."""
    return unquote(url) if url.startswith(_FILE) else url

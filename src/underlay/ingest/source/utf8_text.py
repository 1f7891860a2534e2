"""Reads the text of a source as UTF-8, whatever its encoding.

A byte order mark of UTF-16 or UTF-32 wins over UTF-8, in which no text can begin with these bytes. Bytes that cannot be
decoded become bytes that are not UTF-8, so that only the record that contains them is rejected.
"""

from __future__ import annotations

import codecs
from typing import Protocol

UTF8 = "utf-8"
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The longer marks come first: a mark may be the prefix of another."""
_MARK_BYTES = 4
_UNDECODED = "\udc80"
"""A lone surrogate, which UTF-8 cannot encode."""
_ERRORS = "underlay-undecoded"


def _mark_undecoded(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _UNDECODED, error.end


codecs.register_error(_ERRORS, _mark_undecoded)


class PlainBytes(Protocol):
    """The bytes of a source, read from beginning to end."""

    name: str

    def read(self, size: int) -> bytes:
        """The next bytes, about `size` of them; none at the end."""

    def read_bytes(self) -> int:
        """How many bytes of the source as it is stored were read."""


class Utf8Text:
    """A text source, as UTF-8."""

    def __init__(self, plain: PlainBytes, encoding: str) -> None:
        self.name = plain.name
        self._plain = plain
        self._held = b""
        named = codecs.lookup(encoding).name
        if named in (UTF8, "utf-8-sig"):
            self._held = plain.read(_MARK_BYTES)
            named = next((other for mark, other in _MARKS if self._held.startswith(mark)), UTF8)
        self._decoder = None if named == UTF8 else codecs.getincrementaldecoder(named)(_ERRORS)

    def read(self, size: int) -> bytes:
        """The next bytes, about `size` of them; none at the end."""
        while True:
            data, self._held = self._held[:size], self._held[size:]
            data = data or self._plain.read(size)
            if self._decoder is None:
                return data
            text = self._decoder.decode(data, final=not data)
            if text or not data:
                return text.encode(errors="surrogatepass")

    def read_bytes(self) -> int:
        """How many bytes of the source as it is stored were read."""
        return self._plain.read_bytes()

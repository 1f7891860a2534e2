"""The end of a Parquet file: footer, its length in four bytes, and the magic PAR1."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

from underlay.errors import Malformed, Truncated, UnderlayError, Unsupported, from_os_error
from underlay.parquet.footer.footer import Footer

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TAIL_BYTES = 8
"""The footer's length and the magic."""

SMALLEST_FILE_BYTES = 12
"""The magic at the start and the tail."""

GUESS_BYTES = 64 * 1024
"""How much of a file's end is read first: enough for most footers, and still one request."""


class FooterTail(NamedTuple):
    """Where a file's footer lies."""

    footer_offset: int
    footer_length: int


class LoadedFooter(NamedTuple):
    """A footer read from a file, with the bytes it came from and where they lie."""

    footer: Footer
    raw: bytes
    tail: FooterTail
    file_size: int


def read_tail(data: bytes, file_size: int) -> FooterTail:
    """Where the footer lies, from the last bytes (eight or more) of a file of `file_size` bytes."""
    if file_size < SMALLEST_FILE_BYTES or len(data) < TAIL_BYTES:
        raise Truncated(
            "the file is too short to be a Parquet file",
            place="tail",
            expected=f"at least {SMALLEST_FILE_BYTES} bytes",
            found=f"{min(file_size, len(data))} bytes",
        )
    magic = bytes(data[-4:])
    if magic == ENCRYPTED_MAGIC:
        raise Unsupported("the footer is encrypted", place="tail", hint="Write the file with a plaintext footer.")
    if magic != MAGIC:
        raise Malformed("this is not a Parquet file", place=f"byte {file_size - 4}", expected=MAGIC, found=magic)
    length = int.from_bytes(data[-8:-4], "little")
    longest = file_size - SMALLEST_FILE_BYTES
    if not 0 < length <= longest:
        raise Malformed(
            "the footer's length does not fit the file",
            place=f"byte {file_size - TAIL_BYTES}",
            expected=f"1 to {longest}",
            found=length,
        )
    return FooterTail(file_size - TAIL_BYTES - length, length)


def seal(footer: bytes) -> bytes:
    """A footer with the length and magic that end a file."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def load_footer(source: str | os.PathLike[str] | BinaryIO) -> LoadedFooter:
    """The footer of a local file or of an open one. Reads once, or twice if the footer is longer than 64 KiB."""
    if not isinstance(source, str | os.PathLike):
        return _load(source)
    path = Path(source)
    try:
        with path.open("rb") as file:
            return _load(file)
    except OSError as error:
        raise from_os_error(error, str(path)) from error
    except UnderlayError as error:
        error.at(str(path))
        raise


def _load(file: BinaryIO) -> LoadedFooter:
    file_size = file.seek(0, os.SEEK_END)
    data = _read(file, max(0, file_size - GUESS_BYTES), file_size)
    tail = read_tail(data, file_size)
    begin = len(data) - TAIL_BYTES - tail.footer_length
    if begin >= 0:
        raw = data[begin : len(data) - TAIL_BYTES]
    else:
        raw = _read(file, tail.footer_offset, tail.footer_offset - begin) + data[:-TAIL_BYTES]
    return LoadedFooter(Footer.parse(raw), raw, tail, file_size)


def _read(file: BinaryIO, begin: int, end: int) -> bytes:
    file.seek(begin)
    data = file.read(end - begin)
    if len(data) != end - begin:
        raise Truncated("the file became shorter while it was read", place=f"byte {begin}", found=len(data))
    return data

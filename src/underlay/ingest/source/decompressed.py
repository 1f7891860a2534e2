"""Reads the bytes of a source, decompressed piece by piece. A truncated or damaged source is an error."""

from __future__ import annotations

from io import BufferedIOBase

import pyarrow as pa

from underlay.errors import SourceUnreadable, UnderlayError, from_os_error
from underlay.ingest.source.file_format import MAGIC_BYTES, codec_of


class Plain:
    """A source, read from beginning to end. `file` is at its beginning, to which it can be rewound."""

    def __init__(self, file: BufferedIOBase, name: str) -> None:
        self.name = name
        self.offset = 0
        """Decompressed bytes read so far."""
        self._file = file
        try:
            magic = file.read(MAGIC_BYTES)
            file.seek(0)
        except OSError as error:
            raise from_os_error(error, name) from None
        self.codec = codec_of(name, magic)
        self._stream: BufferedIOBase | pa.NativeFile = file
        # Arrow would accept a compressed source of zero bytes as an empty one.
        if self.codec is not None:
            if not magic:
                raise SourceUnreadable(f"is empty, so not a {self.codec} file", place=name)
            self._stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), self.codec)

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end. Raises SourceUnreadable, and what the opener raises."""
        pieces: list[bytes] = []
        missing = size
        while missing:
            piece = self._read_some(missing)
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
            self.offset += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def arrow_file(self) -> pa.NativeFile:
        """The plain bytes as a file for Arrow, to use instead of `read`."""
        return self._stream if isinstance(self._stream, pa.NativeFile) else pa.PythonFile(self._stream, "r")

    def read_bytes(self) -> int:
        """How many bytes of the stored source were read."""
        return self._file.tell()

    def _read_some(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> UnderlayError:
        # Errors of decompression have no errno.
        if self.codec is None or error.errno is not None:
            return from_os_error(error, self.name)
        return SourceUnreadable(
            f"the {self.codec} data cannot be decompressed",
            place=f"{self.name}, at or before byte {self._file.tell()}, after {self.offset} plain bytes",
            found=str(error),
            hint="The source is truncated or damaged. Fetch it again.",
        )

"""Files handed to the JVM all at once, as the array of Hadoop's FileStatus that Spark's scan works on.

One by one they would cost several round trips each. Hadoop reads an array of them from bytes instead:

| bytes | what |
|---|---|
| 4 | number of files, big-endian |
| for each file 4 | length of its message, big-endian |
| … | the message, protobuf `FileStatusProto`: type = 1, path = 2, length = 3, owner = 5, modification time = 7, \
block size = 11 |
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from struct import pack

from underlay.spark.gateway import Gateway, JavaObject, call

STATUS = "org.apache.hadoop.fs.FileStatus"
_IS_FILE = b"\x08\x02"
_PATH, _LENGTH, _OWNER, _TIME, _BLOCK_SIZE = b"\x12", b"\x18", b"\x2a", b"\x38", b"\x58"
_BLOCK_BYTES = 128 << 20
"""What Hadoop would say of a local file. Spark splits files by its own settings."""


def encode_files(
    paths: Sequence[str],
    sizes: Sequence[int],
    numbers: Sequence[int] | None = None,
    *,
    owners: Sequence[str] | None = None,
) -> bytes:
    """The files as Hadoop reads them. Nothing in the paths is quoted.

    Numbers stand as their modification times, where Spark can ask for them.
    """
    after = _BLOCK_SIZE + _varint(_BLOCK_BYTES)
    begin = lru_cache(maxsize=None)(lambda length: _IS_FILE + _PATH + _varint(length))  # paths are of few lengths
    end = lru_cache(maxsize=None)(lambda owner, number: _owned(owner) + _TIME + _varint(number) + after)
    parts = [pack(">i", len(paths))]
    times = repeat(0, len(paths)) if numbers is None else numbers
    owned = repeat("", len(paths)) if owners is None else owners
    for path, size, number, owner in zip(paths, sizes, times, owned, strict=True):
        text = path.encode()
        message = b"%b%b%b%b%b" % (begin(len(text)), text, _LENGTH, _varint(size), end(owner, number))
        parts += (len(message).to_bytes(4, "big"), message)
    return b"".join(parts)


def _owned(owner: str) -> bytes:
    text = owner.encode()
    return _OWNER + _varint(len(text)) + text if text else b""


def hand_over(gateway: Gateway, encoded: bytes, count: int) -> JavaObject:
    """A `FileStatus[]` of `count` encoded files, in seven round trips."""
    stream = gateway.new("java.io.DataInputStream", gateway.new("java.io.ByteArrayInputStream", encoded))
    writable = gateway.new("org.apache.hadoop.io.ArrayWritable", gateway.java_class(STATUS))
    call(writable, "readFields", stream)
    array = gateway.new_array(STATUS, count)
    gateway.static("java.lang.System", "arraycopy", call(writable, "get"), 0, array, 0, count)
    return array


def _varint(number: int) -> bytes:
    """An unsigned number as protobuf writes it."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)

"""Passes files to the JVM in bulk, as the array of Hadoop's FileStatus that Spark's scan works on.

One by one, each would cost several round trips. Hadoop can read an array of them from bytes:

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
from struct import pack

from underlay.spark.jvm.gateway import Gateway, JavaObject, call

STATUS = "org.apache.hadoop.fs.FileStatus"
_IS_FILE = b"\x08\x02"
_PATH, _LENGTH, _OWNER, _TIME, _BLOCK_SIZE = b"\x12", b"\x18", b"\x2a", b"\x38", b"\x58"
_BLOCK_BYTES = 128 << 20
"""Hadoop's value for a local file. Spark splits files by its own settings."""
_FEW = 2
"""Up to this many files take fewer round trips when handed over one by one."""


def hand_over(
    gateway: Gateway,
    paths: Sequence[str],
    sizes: Sequence[int],
    numbers: Sequence[int] | None = None,
    *,
    owners: Sequence[str] | None = None,
) -> JavaObject:
    """A `FileStatus[]` of these files, in at most seven round trips. Paths are not percent-encoded.

    Numbers travel as modification times, where Spark can read them.
    """
    count = len(paths)
    times = [0] * count if numbers is None else numbers
    array = gateway.new_array(STATUS, count)
    if count <= _FEW and owners is None:  # and the JVM need not load its protobuf classes
        for at, (path, size, number) in enumerate(zip(paths, sizes, times, strict=True)):
            place = gateway.new("org.apache.hadoop.fs.Path", path)
            status = gateway.new(STATUS, size, False, 0, _BLOCK_BYTES, number, place)
            gateway.static("java.lang.reflect.Array", "set", array, at, status)
        return array
    encoded = _encode(paths, sizes, times, [""] * count if owners is None else owners)
    stream = gateway.new("java.io.DataInputStream", gateway.new("java.io.ByteArrayInputStream", encoded))
    writable = gateway.new("org.apache.hadoop.io.ArrayWritable", gateway.java_class(STATUS))
    call(writable, "readFields", stream)
    gateway.static("java.lang.System", "arraycopy", call(writable, "get"), 0, array, 0, count)
    return array


def _encode(paths: Sequence[str], sizes: Sequence[int], times: Sequence[int], owners: Sequence[str]) -> bytes:
    """The files as Hadoop reads them."""
    after = _BLOCK_SIZE + _varint(_BLOCK_BYTES)
    begin = lru_cache(maxsize=None)(lambda length: _IS_FILE + _PATH + _varint(length))  # paths have few lengths
    end = lru_cache(maxsize=None)(lambda owner, time: _owned(owner) + _TIME + _varint(time) + after)
    parts = [pack(">i", len(paths))]
    for path, size, time, owner in zip(paths, sizes, times, owners, strict=True):
        text = path.encode()
        message = b"%b%b%b%b%b" % (begin(len(text)), text, _LENGTH, _varint(size), end(owner, time))
        parts += (len(message).to_bytes(4, "big"), message)
    return b"".join(parts)


def _owned(owner: str) -> bytes:
    text = owner.encode()
    return _OWNER + _varint(len(text)) + text if text else b""


def _varint(number: int) -> bytes:
    """An unsigned number as protobuf writes it."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)

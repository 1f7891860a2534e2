"""Frames between server and worker: a kind, a length, and JSON or bytes of an answer."""

from __future__ import annotations

import json
import socket
import struct
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

Message: TypeAlias = dict[str, Any]  # Any: JSON

HEAD = struct.Struct("<BI")
MOST_BYTES = 64 << 20
"""The largest frame: a greater length is not from our protocol."""


class FrameKind(IntEnum):
    """What a frame holds."""

    MESSAGE = 1
    DATA = 2


class Frame(NamedTuple):
    """One frame, decoded as far as its kind says."""

    kind: FrameKind
    payload: bytes

    @property
    def message(self) -> Message:
        """The JSON in the frame."""
        found: Message = json.loads(self.payload)
        return found


def frame_of(message: Message) -> bytes:
    """A message as bytes."""
    payload = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode()
    return HEAD.pack(FrameKind.MESSAGE, len(payload)) + payload


def data_frame(data: bytes | memoryview) -> bytes:
    """Bytes of an answer as a frame."""
    return HEAD.pack(FrameKind.DATA, len(data)) + bytes(data)


def read_head(head: bytes) -> tuple[FrameKind, int]:
    """The kind and length of the payload that follows. Raises ValueError when this is not a frame."""
    kind, length = HEAD.unpack(head)
    if length > MOST_BYTES:
        raise ValueError(f"a frame of {length} bytes")
    return FrameKind(kind), length


def receive(connection: socket.socket) -> Frame | None:
    """The next frame of a blocking socket; None at its end."""
    head = _exactly(connection, HEAD.size)
    if head is None:
        return None
    kind, length = read_head(head)
    payload = _exactly(connection, length)
    return None if payload is None else Frame(kind, payload)


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    found = bytearray()
    while len(found) < count:
        part = connection.recv(min(count - len(found), 1 << 16))
        if not part:
            return None
        found += part
    return bytes(found)

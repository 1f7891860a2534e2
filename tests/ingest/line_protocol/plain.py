"""A slow parser of line protocol, byte by byte, written from the rules and not from the fast one."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

BOOLEANS = {b"t", b"T", b"true", b"True", b"TRUE", b"f", b"F", b"false", b"False", b"FALSE"}


class Refused(Exception):
    """The line is wrong."""


@dataclass
class PlainLine:
    """One line, with values as Python has them; forms by name."""

    measurement: str
    tags: dict[str, str] = field(default_factory=dict)
    fields: dict[str, object] = field(default_factory=dict)
    time: tuple[int, str] | None = None


class PlainParser:
    """Reads a body from its beginning to its end."""

    def __init__(self, body: bytes, *, is_questdb: bool) -> None:
        self.body, self.is_questdb, self.at = body, is_questdb, 0

    def lines(self) -> list[PlainLine]:
        """Every line. Raises Refused at the first that is wrong."""
        found = []
        while self.at < len(self.body):
            while self._here() in (b" ", b"\t", b"\r"):
                self.at += 1
            if self._here() in (b"\n", b"#", b""):
                while self._here() not in (b"\n", b""):
                    self.at += 1
                self.at += 1
            else:
                found.append(self._line())
        return found

    def _here(self) -> bytes:
        return self.body[self.at : self.at + 1]

    def _name(self, stops: bytes, escapable: bytes) -> str:
        found = bytearray()
        while (here := self._here()) and here not in stops_of(stops):
            if here == b"\\":
                following = self.body[self.at + 1 : self.at + 2]
                if self.is_questdb and not following:
                    raise Refused
                if self.is_questdb or (following and following in stops_of(escapable)):
                    found += following
                    self.at += 2
                    continue
            found += here
            self.at += 1
        return decoded(bytes(found))

    def _line(self) -> PlainLine:
        key_stops = b",= \n\r" if self.is_questdb else b",= \n"
        line = PlainLine(self._name(key_stops if self.is_questdb else b", \n", b", "))
        if not line.measurement and self.body[self.at - 1 : self.at] in (b"\n", b""):
            raise Refused
        names: list[str] = []
        while self._here() == b",":
            self.at += 1
            name = self._key(key_stops)
            value = self._name(key_stops, b",= ")
            if not value and not self.is_questdb:
                raise Refused
            names.append(name)
            line.tags[name] = value
        self._spaces()
        while True:
            name = self._key(key_stops)
            names.append(name)
            line.fields[name] = self._value()
            if self._here() != b",":
                break
            self.at += 1
        if self._here() == b" ":
            self._spaces()
            if self._here() not in (b"\n", b"", b"\r"):
                line.time = self._time()
                while self._here() == b" ":
                    self.at += 1
        if self._here() == b"\r":
            self.at += 1
        if self._here() not in (b"\n", b""):
            raise Refused
        self.at += 1
        if len(set(names)) < len(names):
            raise Refused
        return line

    def _key(self, stops: bytes) -> str:
        before = self.at
        name = self._name(stops, b",= ")
        if self.at == before or self._here() != b"=":
            raise Refused
        self.at += 1
        return name

    def _spaces(self) -> None:
        if self._here() != b" ":
            raise Refused
        while self._here() == b" ":
            self.at += 1

    def _value(self) -> object:
        if self._here() == b'"':
            return self._text()
        if self._here() == b"=" and self.is_questdb:
            if self.body[self.at + 1 : self.at + 2] != b"\x10" or len(self.body) < self.at + 10:
                raise Refused
            self.at += 10
            return ("float", struct.unpack("<d", self.body[self.at - 8 : self.at])[0])
        raw = self._bare()
        if raw in BOOLEANS:
            return raw[:1] in b"tT"
        suffixes = {b"i": "integer", b"u": "unsigned"} | ({b"t": "us", b"n": "ns"} if self.is_questdb else {})
        if raw[-1:] in suffixes and is_whole(raw[:-1]):
            number = int(raw[:-1])
            is_unsigned = raw.endswith(b"u")
            if is_unsigned and (raw.startswith(b"-") or number >= 1 << 64):
                raise Refused
            if not is_unsigned and not -(1 << 63) <= number < 1 << 63:
                raise Refused
            return (suffixes[raw[-1:]], number)
        if self.is_questdb and raw.lstrip(b"+-") in (b"NaN", b"nan", b"Infinity", b"inf") and raw.count(b"-") < 2:
            return ("float", float(raw))
        if raw.lower().strip(b"0123456789.e+-") or b"_" in raw:
            raise Refused
        try:
            real = float(raw)
        except ValueError:
            raise Refused from None
        if real in (float("inf"), float("-inf")):
            raise Refused
        return ("float", real)

    def _text(self) -> str:
        found = bytearray()
        self.at += 1
        while (here := self._here()) != b'"':
            if not here or (here == b"\n" and self.is_questdb):
                raise Refused
            following = self.body[self.at + 1 : self.at + 2]
            if here == b"\\":
                if not following:
                    raise Refused
                found += following if self.is_questdb or following in (b'"', b"\\") else here + following
                self.at += 2
            else:
                found += here
                self.at += 1
        self.at += 1
        return decoded(bytes(found))

    def _bare(self) -> bytes:
        begin = self.at
        while self._here() not in (b",", b" ", b"\n", b"\r", b""):
            self.at += 1
        return self.body[begin : self.at]

    def _time(self) -> tuple[int, str]:
        raw = self._bare()
        unit = {b"n": "ns", b"t": "us"}.get(raw[-1:], "") if self.is_questdb else ""
        digits = raw[:-1] if unit else raw
        if not is_whole(digits) or not -(1 << 63) <= int(digits) < 1 << 63:
            raise Refused
        return int(digits), unit


def stops_of(stops: bytes) -> list[bytes]:
    """The bytes one by one."""
    return [bytes((one,)) for one in stops]


def is_whole(raw: bytes) -> bool:
    """Whether these are digits with at most a sign."""
    digits = raw[1:] if raw[:1] in (b"+", b"-") else raw
    return bool(digits) and not digits.strip(b"0123456789")


def decoded(raw: bytes) -> str:
    """Text. Raises Refused."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Refused from None

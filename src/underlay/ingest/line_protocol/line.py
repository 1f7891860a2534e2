"""Parses one line of line protocol: its key, which says how it is written, and its values as bytes.

    measurement[,tag=value …] field=value[,field=value …] [time]

Names and tags are bare; a backslash makes the next separator part of them. In InfluxDB's flavour it is itself
otherwise; in QuestDB's it stands for the next byte, whatever that is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from underlay.ingest.line_protocol.values import PATTERNS, Flavour, Form, decode, scan_binary, unescape

NAME_PATTERNS: dict[Flavour, bytes] = {
    Flavour.INFLUXDB: rb"(?:[^,= \n\\]++|\\[,= ]|\\)++",
    Flavour.QUESTDB: rb"(?:[^,= \n\r\\]++|\\(?s:.))++",
}
"""A key, or the value of a tag."""
MEASUREMENT_PATTERNS: dict[Flavour, bytes] = {
    Flavour.INFLUXDB: rb"(?:[^, \n\\]++|\\[, ]|\\)++",
    Flavour.QUESTDB: NAME_PATTERNS[Flavour.QUESTDB],
}
TIME_PATTERNS: dict[Flavour, bytes] = {Flavour.INFLUXDB: rb"([+-]?[0-9]+)()", Flavour.QUESTDB: rb"([+-]?[0-9]+)([tn]?)"}
END_PATTERN = rb" *+\r?(?:\n|\Z)"

_SHOWN_BYTES = 60
_AFTER_VALUE = rb"(?=[, \r\n]|\Z)"


@dataclass(frozen=True, slots=True)
class LineKey:
    """How a line is written. Lines with the same key have the same columns, and their values have the same forms."""

    measurement: bytes
    tags: tuple[bytes, ...]
    fields: tuple[tuple[bytes, Form], ...]
    time: bytes | None
    """What follows the number of the time, such as `n`; None without a time."""


class LineFault(Exception):
    """What is wrong with a line, and where: `at` is a position in the body."""

    def __init__(self, at: int, problem: str, reason: str) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem
        self.reason = reason
        """The same in the words that InfluxDB uses, for programs that look for them."""


def too_long(begin: int, line_bytes: int) -> LineFault:
    """The fault of a line that is too long."""
    return LineFault(begin + line_bytes, f"the line is longer than {line_bytes:,} bytes", "line is too long")


class LineParser:
    """Parses lines of one flavour, one at a time: this is the plain way, which says what a line means."""

    def __init__(self, flavour: Flavour, line_bytes: int) -> None:
        self._flavour = flavour
        self._line_bytes = line_bytes
        self._measurement = re.compile(MEASUREMENT_PATTERNS[flavour])
        self._name = re.compile(NAME_PATTERNS[flavour])
        self._time = re.compile(TIME_PATTERNS[flavour] + rb"(?=[ \r\n]|\Z)")
        self._values = [
            (form, re.compile(pattern + _AFTER_VALUE))
            for form, pattern in PATTERNS[flavour].items()
            if form is not Form.BINARY_FLOAT
        ]
        self._spaces = re.compile(rb" +")
        self._end = re.compile(END_PATTERN)
        self._bare = re.compile(rb"[^, \r\n]*")

    def parse(self, body: bytes, begin: int) -> tuple[LineKey, tuple[bytes, ...], int]:
        """The key of the line at `begin`, its values in order, and where the next line begins. Raises LineFault."""
        name = self._measurement.match(body, begin)
        if name is None:
            raise LineFault(begin, "the line has no measurement", "missing measurement")
        at = name.end()
        limit = begin + self._line_bytes
        tags, values, at = self._tags(body, at, limit)
        gap = self._spaces.match(body, at)
        if gap is None or self._end.match(body, at) is not None:
            raise LineFault(at, "the line has no fields", "missing fields")
        fields, field_values, at = self._fields(body, gap.end(), limit)
        values += field_values
        time = None
        gap = self._spaces.match(body, at)
        if gap is not None and self._end.match(body, at) is None:
            time, value, at = self._time_at(body, gap.end())
            values.append(value)
        end = self._end.match(body, at)
        if end is None:
            raise LineFault(at, f"unexpected {_shown(body, at)} at the end of the line", "invalid field format")
        key = LineKey(name.group(), tuple(tags), tuple(fields), time)
        self._check_names(body, begin, key)
        return key, tuple(values), end.end()

    def _tags(self, body: bytes, at: int, limit: int) -> tuple[list[bytes], list[bytes], int]:
        names: list[bytes] = []
        values: list[bytes] = []
        while body[at : at + 1] == b",":
            if at > limit:
                raise too_long(limit - self._line_bytes, self._line_bytes)
            key = self._name.match(body, at + 1)
            if key is None:
                raise LineFault(at + 1, "a tag has no name", "missing tag key")
            if body[key.end() : key.end() + 1] != b"=":
                raise LineFault(key.end(), f"the tag {_text(key.group())} has no value", "missing tag value")
            at = key.end() + 1
            value = self._name.match(body, at)
            if value is None and (self._flavour is Flavour.INFLUXDB or body[at : at + 1] not in (b",", b" ")):
                raise LineFault(at, f"the tag {_text(key.group())} has no value", "missing tag value")
            raw = b"" if value is None else value.group()
            self._check(Form.TAG, raw, at, key.group())
            at += len(raw)
            if body[at : at + 1] == b"=":
                raise LineFault(at, f"the tag {_text(key.group())} has a second =", "missing tag value")
            names.append(key.group())
            values.append(raw)
        return names, values, at

    def _fields(self, body: bytes, at: int, limit: int) -> tuple[list[tuple[bytes, Form]], list[bytes], int]:
        fields: list[tuple[bytes, Form]] = []
        values: list[bytes] = []
        while True:
            if at > limit:
                raise too_long(limit - self._line_bytes, self._line_bytes)
            key = self._name.match(body, at)
            if key is None:
                raise LineFault(at, "a field has no name", "missing field key")
            if body[key.end() : key.end() + 1] != b"=":
                raise LineFault(key.end(), f"the field {_text(key.group())} has no value", "missing field value")
            at = key.end() + 1
            form, end = self._value(body, at, key.group())
            raw = body[at:end]
            self._check(form, raw, at, key.group())
            fields.append((key.group(), form))
            values.append(raw)
            at = end
            if body[at : at + 1] != b",":
                return fields, values, at
            at += 1

    def _value(self, body: bytes, at: int, key: bytes) -> tuple[Form, int]:
        if body[at : at + 1] == b"=" and self._flavour is Flavour.QUESTDB:
            binary = scan_binary(body, at)
            if binary is None:
                raise LineFault(at, f"the binary value of {_text(key)} is damaged or cut short", "invalid field format")
            return binary
        for form, pattern in self._values:
            found = pattern.match(body, at)
            if found is not None:
                return form, found.end()
        bare = self._bare.match(body, at)
        if bare is None or bare.end() == at:
            raise LineFault(at, f"the field {_text(key)} has no value", "missing field value")
        if bare.group().startswith(b'"'):
            raise LineFault(
                at, f"the text of {_text(key)} does not end, or goes on behind its quotes", "unbalanced quotes"
            )
        hint = "a text has quotes around it" if bare.group()[:1].isalpha() else "it is no number, boolean or text"
        raise LineFault(at, f"{_shown(body, at)} is no value of the field {_text(key)}: {hint}", "invalid number")

    def _time_at(self, body: bytes, at: int) -> tuple[bytes, bytes, int]:
        found = self._time.match(body, at)
        if found is None:
            raise LineFault(at, f"{_shown(body, at)} is no time: it is a whole number", "bad timestamp")
        if not -(1 << 63) <= int(found.group(1)[:40]) < 1 << 63:
            raise LineFault(at, f"the time {_shown(body, at)} is beyond 64 bits", "time outside range")
        return found.group(2), found.group(1), found.end()

    def _check(self, form: Form, raw: bytes, at: int, key: bytes) -> None:
        try:
            decode(form, (raw,), self._flavour)
        except (ValueError, OverflowError):
            is_text = form in (Form.TAG, Form.TEXT)
            problem = "is not UTF-8" if is_text else f"is beyond what the form {form.value} can hold"
            raise LineFault(at, f"the value of {_text(key)} {problem}", "value out of range") from None

    def _check_names(self, body: bytes, begin: int, key: LineKey) -> None:
        seen: set[bytes] = set()
        for raw in (key.measurement, *key.tags, *(name for name, _ in key.fields)):
            try:
                raw.decode()
            except UnicodeDecodeError:
                raise LineFault(body.index(raw, begin), "a name is not UTF-8", "invalid name") from None
        for raw in (*key.tags, *(name for name, _ in key.fields)):
            name = unescape(raw, self._flavour)
            if name in seen:
                again = max(
                    body.rfind(mark + raw + b"=", begin, self._line_end(body, begin)) + 1 for mark in (b",", b" ")
                )
                problem = f"the line has two values for {_text(raw)}"
                raise LineFault(max(again, begin), problem, "duplicate tags" if raw in key.tags else "duplicate fields")
            seen.add(name)

    @staticmethod
    def _line_end(body: bytes, begin: int) -> int:
        end = body.find(b"\n", begin)
        return len(body) if end < 0 else end


def _text(raw: bytes) -> str:
    return raw[:_SHOWN_BYTES].decode(errors="replace")


def _shown(body: bytes, at: int) -> str:
    found = body[at : at + _SHOWN_BYTES]
    return repr(
        re.split(rb"[, \r\n]", found, maxsplit=1)[0].decode(errors="replace") or found[:1].decode(errors="replace")
    )

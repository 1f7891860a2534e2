"""Parses a body of line protocol to Arrow rows by measurement.

Nothing is guessed and nothing dropped: a body with a faulty line has problems, each with line and column, and the
caller takes none of it. Pure: the time of lines without one is the caller's to give.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.ingest.line_protocol.line import LineFault, LineKey, LineParser, too_long
from underlay.ingest.line_protocol.shape import shape_pattern
from underlay.ingest.line_protocol.values import Flavour, Form, decode, unescape, whole_numbers
from underlay.schema.arrow_aliases import AnyArray

LINE_BYTES = 1 << 20
"""The longest line. Longer ones are a sender's mistake: a missing end of line, or a quote that never closes."""
PROBLEMS = 100
"""At most this many problems are looked for in one body."""
_SHOWN_BYTES = 200
_TRIED = 4
_SKIPPED = re.compile(rb"(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+[ \t\r]*+(?:#[^\n]*+\Z)?")
_PRECISIONS: dict[str, tuple[str, int]] = {
    "n": ("ns", 1),
    "ns": ("ns", 1),
    "u": ("us", 1),
    "us": ("us", 1),
    "µ": ("us", 1),
    "ms": ("ms", 1),
    "s": ("s", 1),
    "m": ("s", 60),
    "h": ("s", 3600),
}
_SUFFIXES = {b"n": "ns", b"t": "us"}
"""QuestDB's suffixes say a time's own unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineProblem:
    """What is wrong with one line."""

    line: int
    """Its number in the body, from 1; a text with line ends in it spans several."""
    column: int
    """The position of the fault in the line in bytes, from 1."""
    problem: str
    reason: str
    """The same in the words that InfluxDB uses."""
    text: str
    """The beginning of the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesAlike:
    """Lines of one measurement with the same keys and forms, in order."""

    starts: tuple[int, ...]
    """Where each line begins in the body; this orders lines across groups."""
    tags: tuple[str, ...]
    forms: dict[str, Form]
    """The form of each tag and field, by name."""
    rows: pa.Table
    """Tags and fields, by their names."""
    times: AnyArray | None
    """None if the lines have no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLines:
    """The lines of a body."""

    measurements: dict[str, list[LinesAlike]]
    row_count: int
    problems: tuple[LineProblem, ...]


@dataclass(slots=True)
class _Group:
    """Lines of one key, while the body is parsed."""

    key: LineKey
    pattern: re.Pattern[bytes] | None = None
    values: list[tuple[bytes, ...]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    follower: _Group | None = None
    """Which group's line came after this one's the last time: senders repeat sequences of lines."""


def parse_lines(body: bytes, flavour: Flavour, precision: str = "ns", *, line_bytes: int = LINE_BYTES) -> ParsedLines:
    """Parse a body. Raises InvalidRequest for an unknown precision; faults of lines are in the result."""
    unit = _PRECISIONS.get(precision)
    if unit is None:
        raise InvalidRequest(
            "unknown precision", found=repr(precision)[:40], hint=f"Known ones are {', '.join(_PRECISIONS)}."
        )
    groups, faults = _group_lines(body, flavour, line_bytes)
    measurements: dict[str, list[LinesAlike]] = {}
    for one in groups:
        if not one.starts:
            continue
        try:
            measurement = unescape(one.key.measurement, flavour, "measurement").decode()
            measurements.setdefault(measurement, []).append(_alike(one, flavour, unit))
        except (ValueError, OverflowError) as error:
            faults += _faults_of(body, one, flavour, line_bytes) or [
                (one.starts[0], LineFault(one.starts[0], str(error), "invalid"))
            ]
    faults.sort(key=lambda fault: fault[0])
    return ParsedLines(
        measurements=measurements,
        row_count=sum(len(one.starts) for one in groups),
        problems=tuple(problem_at(body, start, fault) for start, fault in faults[:PROBLEMS]),
    )


def problem_at(body: bytes, start: int, fault: LineFault) -> LineProblem:
    """A fault with its line and column. `start` is where the line begins, behind blanks."""
    return LineProblem(
        line=body.count(b"\n", 0, start) + 1,
        column=fault.at - body.rfind(b"\n", 0, start),
        problem=fault.problem,
        reason=fault.reason,
        text=body[start : start + _SHOWN_BYTES].partition(b"\n")[0].decode(errors="replace").rstrip("\r"),
    )


def _group_lines(body: bytes, flavour: Flavour, line_bytes: int) -> tuple[list[_Group], list[tuple[int, LineFault]]]:
    parser = LineParser(flavour, line_bytes)
    groups: dict[LineKey, _Group] = {}
    by_begin: dict[bytes, list[_Group]] = {}
    faults: list[tuple[int, LineFault]] = []
    skipped = _SKIPPED.match
    last = _Group(LineKey(b"", (), (), None))
    at, size = 0, len(body)
    while at < size and len(faults) < PROBLEMS:
        group = last.follower
        found = group.pattern.match(body, at) if group is not None and group.pattern is not None else None
        if found is None and (body[at] in b"# \t\r\n"):
            at = skipped(body, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if at >= size:
                break
        if found is None:
            group, found = _guess(body, at, by_begin)
        if found is not None and group is not None:
            values, end = found.groups(), found.end()
        else:
            try:
                key, values, end = parser.parse(body, at)
            except LineFault as fault:
                faults.append((at, fault))
                at = _next_line(body, max(at, fault.at))
                continue
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Group(key)
            elif group.pattern is None and len(group.starts) == 1:  # a second line like it: there will be more
                group.pattern = shape_pattern(key, flavour)
                alike = by_begin.setdefault(key.measurement[:1], [])
                alike.insert(0, group)
        if end - at > line_bytes:
            faults.append((at, too_long(at, line_bytes)))
            at = end
            continue
        group.values.append(values)
        group.starts.append(at)
        last.follower = group
        last = group
        at = end
    return list(groups.values()), faults


def _guess(body: bytes, at: int, by_begin: dict[bytes, list[_Group]]) -> tuple[_Group | None, re.Match[bytes] | None]:
    """One of the groups met lately that the line belongs to."""
    for group in by_begin.get(body[at : at + 1], ())[:_TRIED]:
        found = group.pattern.match(body, at) if group.pattern is not None else None
        if found is not None:
            return group, found
    return None, None


def _next_line(body: bytes, at: int) -> int:
    end = body.find(b"\n", at)
    return len(body) if end < 0 else end + 1


def _faults_of(body: bytes, group: _Group, flavour: Flavour, line_bytes: int) -> list[tuple[int, LineFault]]:
    """Which lines of a group hold values that cannot be: the plain parser checks each value."""
    parser = LineParser(flavour, line_bytes)
    found: list[tuple[int, LineFault]] = []
    for start in group.starts:
        try:
            parser.parse(body, start)
        except LineFault as fault:
            found.append((start, fault))
            if len(found) == PROBLEMS:
                break
    return found


def _alike(group: _Group, flavour: Flavour, unit: tuple[str, int]) -> LinesAlike:
    """The columns of a group. Raises ValueError and OverflowError."""
    key = group.key
    written = [(name, Form.TAG) for name in key.tags] + list(key.fields)
    names = [unescape(raw, flavour).decode() for raw, _ in written]
    columns: Sequence[tuple[bytes, ...]] = list(zip(*group.values, strict=True))
    arrays = [decode(form, raw, flavour) for (_, form), raw in zip(written, columns, strict=False)]
    return LinesAlike(
        starts=tuple(group.starts),
        tags=tuple(names[: len(key.tags)]),
        forms={name: form for name, (_, form) in zip(names, written, strict=True)},
        rows=pa.table(arrays, names=names),
        times=None if key.time is None else _times(columns[-1], key.time, unit),
    )


def _times(raw: Sequence[bytes], suffix: bytes, unit: tuple[str, int]) -> AnyArray:
    name, factor = (_SUFFIXES[suffix], 1) if suffix else unit
    numbers = whole_numbers(raw)
    whole = numbers if factor == 1 else [number * factor for number in numbers]
    return pa.array(whole, pa.int64()).cast(pa.timestamp(name, "UTC"))

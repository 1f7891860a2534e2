"""Counts the rows of a kept result into the bins of a chart: DuckDB reads the file, and a chart's worth is sent.

Columns are known by number, since two columns of a result may have the same name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.dataset as ds

from underlay.errors import InvalidRequest
from underlay.local.sql.run import run_sql
from underlay.schema.arrow_aliases import AnyType
from underlay.server.kept.rows_file import map_rows

MOST_BINS = 2_000
MOST_SERIES = 20
MOST_BARS = 50
_MOST_SIDE = 256
"""Bins of a scatter plot along each side."""
_MOST_Y = 8
_SHOWN_CHARS = 200
_DAY = 86400
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
_TIME_STEPS = (1, 2, 5, 10, 15, 30, *(60 * minutes for minutes in _MINUTES), _DAY, 2 * _DAY, 7 * _DAY)


class BinKind(StrEnum):
    """The chart that the bins are for."""

    HISTOGRAM = "histogram"
    LINE = "line"
    SCATTER = "scatter"
    BAR = "bar"


@dataclass(frozen=True, slots=True, kw_only=True)
class BinsRequest:
    """The columns by number: `x`, those whose values are shown over it, and the one that tells lines apart."""

    kind: BinKind
    x: int
    y: tuple[int, ...] = ()
    series: int | None = None
    bins: int = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedRows:
    """The bins, and facts about them."""

    facts: dict[str, object]
    rows: pa.Table


def read_kind(text: str) -> BinKind:
    """The kind of chart. Raises InvalidRequest."""
    try:
        return BinKind(text)
    except ValueError:
        known = ", ".join(one.value for one in BinKind)
        raise InvalidRequest("there is no such chart", expected=known, found=repr(text)[:80]) from None


def bin_rows(path: str, asked: BinsRequest) -> BinnedRows:
    """Count the rows of the file at `path`. Raises InvalidRequest for columns that the chart cannot show."""
    with map_rows(path) as file:
        return _Bins(pa.ipc.open_file(file).read_all(), asked).found()


class _Bins:
    """One count over the rows, whose columns are named x, y0, y1 … and s."""

    def __init__(self, rows: pa.Table, asked: BinsRequest) -> None:
        self._asked = asked
        _check(asked)
        self._fields = [_field(rows.schema, number) for number in (asked.x, *asked.y)]
        numbers, names = [asked.x, *asked.y], ["x", *(f"y{at}" for at in range(len(asked.y)))]
        if asked.series is not None:
            _field(rows.schema, asked.series)
            numbers.append(asked.series)
            names.append("s")
        # by number and renamed: SQL never holds a name of the result
        self._rows = ds.dataset(rows.select(numbers).rename_columns(names))
        self._row_count = rows.num_rows

    def found(self) -> BinnedRows:
        kinds = {
            BinKind.HISTOGRAM: self._histogram,
            BinKind.LINE: self._line,
            BinKind.SCATTER: self._scatter,
            BinKind.BAR: self._bar,
        }
        found = kinds[self._asked.kind]()
        return BinnedRows(
            facts={"kind": self._asked.kind.value, "total": self._row_count, **found.facts}, rows=found.rows
        )

    def _histogram(self) -> BinnedRows:
        (x,) = self._numbers(1)
        low, high, counted = self._span(x)
        if low is None or high is None:
            return self._nothing({"bin": pa.int32(), "count": pa.int64()})
        begin, width, bins = _nice(low, high, self._asked.bins, self._fields[0].type)
        rows = self._ask(
            f"SELECT {_bin(x, 'begin', 'span', bins)} AS bin, count(*) AS count FROM kept WHERE isfinite({x})"
            " GROUP BY bin ORDER BY bin",
            begin=begin,
            span=width * 0.5 * bins,
        )
        return BinnedRows(facts={"low": begin, "width": width, "bins": bins, **self._left_out(counted)}, rows=rows)

    def _line(self) -> BinnedRows:
        x, *ys = self._numbers(1 + len(self._asked.y))
        low, high, counted = self._span(x)
        bins = self._asked.bins
        kinds: dict[str, AnyType] = {"series": pa.string(), "bin": pa.int32(), "count": pa.int64()}
        if low is None or high is None:
            return self._nothing(kinds)
        series = "NULL::VARCHAR" if self._asked.series is None else "s::VARCHAR"
        values = "".join(
            f", min({y}) FILTER ({_finite(y)}) AS min{at}, max({y}) FILTER ({_finite(y)}) AS max{at},"
            f" avg({y}) FILTER ({_finite(y)}) AS avg{at}"
            for at, y in enumerate(ys)
        )
        facts: dict[str, object] = {"low": low, "width": (high / bins - low / bins) or 1.0, "bins": bins}
        chosen = "true"
        if self._asked.series is not None:
            total = self._ask(
                "SELECT count(DISTINCT s::VARCHAR) + count(DISTINCT CASE WHEN s IS NULL THEN 1 END) AS n FROM kept"
            )
            facts["series"] = total["n"][0].as_py()
            # the lines with the most rows, and of equals the first by name
            chosen = (
                f"coalesce('s' || {series}, '') IN (SELECT coalesce('s' || {series}, '') AS key FROM kept"
                f" GROUP BY key ORDER BY count(*) DESC, key LIMIT {MOST_SERIES})"
            )
        rows = self._ask(
            f"SELECT left({series}, {_SHOWN_CHARS}) AS series, {_bin(x, 'low', 'span', bins)} AS bin, count(*) AS count"
            f"{values} FROM kept WHERE isfinite({x}) AND {chosen} GROUP BY {series}, bin ORDER BY series, bin",
            low=low,
            span=_half_span(low, high),
        )
        return BinnedRows(facts={**facts, **self._left_out(counted)}, rows=rows)

    def _scatter(self) -> BinnedRows:
        x, y = self._numbers(2)
        both = f"{_finite(x)} AND {_finite(y)}"
        low, high, counted = self._span(x, both)
        low_y, high_y, _ = self._span(y, both)
        kinds: dict[str, AnyType] = {"bin": pa.int32(), "bin_y": pa.int32(), "count": pa.int64()}
        if low is None or high is None or low_y is None or high_y is None:
            return self._nothing(kinds)
        bins = min(self._asked.bins, _MOST_SIDE)
        rows = self._ask(
            f"SELECT {_bin(x, 'low', 'span', bins)} AS bin, {_bin(y, 'low_y', 'span_y', bins)} AS bin_y,"
            f" count(*) AS count FROM kept WHERE {both} GROUP BY ALL ORDER BY ALL",
            low=low,
            span=_half_span(low, high),
            low_y=low_y,
            span_y=_half_span(low_y, high_y),
        )
        facts = {"low": low, "width": (high / bins - low / bins) or 1.0, "bins": bins}
        facts |= {"low_y": low_y, "width_y": (high_y / bins - low_y / bins) or 1.0}
        return BinnedRows(facts={**facts, **self._left_out(counted)}, rows=rows)

    def _bar(self) -> BinnedRows:
        kind = self._fields[0].type
        if pa.types.is_nested(kind) or _is_binary(kind) or pa.types.is_decimal256(kind):
            raise InvalidRequest(
                "a bar cannot stand for such values", expected="text, numbers or times", found=str(kind)
            )
        ys = [_number(field, f"y{at}") for at, field in enumerate(self._fields[1:])]
        sums = "".join(f", sum({y}) FILTER ({_finite(y)}) AS sum{at}" for at, y in enumerate(ys))
        order = "sum0" if ys else "count"
        rows = self._ask(
            f"SELECT left(x::VARCHAR, {_SHOWN_CHARS}) AS category, count(*) AS count{sums} FROM kept"
            f" GROUP BY x::VARCHAR ORDER BY {order} DESC NULLS LAST, category LIMIT {MOST_BARS}"
        )
        total = self._ask("SELECT count(*) AS n FROM (SELECT DISTINCT x::VARCHAR FROM kept) AS one")
        return BinnedRows(facts={"categories": total["n"][0].as_py()}, rows=rows)

    def _numbers(self, count: int) -> list[str]:
        """The columns as doubles, times in seconds since 1970."""
        if len(self._fields) != count:
            raise InvalidRequest(
                "the chart needs other columns", expected=f"{count - 1} of y", found=len(self._fields) - 1
            )
        names = ["x", *(f"y{at}" for at in range(count - 1))]
        return [_number(field, name) for field, name in zip(self._fields, names, strict=True)]

    def _span(self, value: str, where: str = "true") -> tuple[float | None, float | None, int]:
        """The least and greatest finite value, and how many there are."""
        text = f"SELECT min(v) AS low, max(v) AS high, count(v) AS n FROM (SELECT {value} AS v FROM kept WHERE {where})"
        row = self._ask(f"{text} AS one WHERE isfinite(v)").to_pylist()[0]
        return row["low"], row["high"], row["n"]

    def _left_out(self, counted: int) -> dict[str, object]:
        return {"left_out": self._row_count - counted}

    def _nothing(self, kinds: dict[str, AnyType]) -> BinnedRows:
        facts: dict[str, object] = {"low": None, "width": None, "bins": 0, "left_out": self._row_count}
        return BinnedRows(facts=facts, rows=pa.schema(list(kinds.items())).empty_table())

    def _ask(self, text: str, **parameters: float) -> pa.Table:
        return run_sql(text, _no_table, _no_names, parameters or None, given={"kept": self._rows}).to_arrow()


def _check(asked: BinsRequest) -> None:
    if not 1 <= asked.bins <= MOST_BINS:
        raise InvalidRequest("that many bins are not counted", expected=f"1 to {MOST_BINS}", found=asked.bins)
    if len(asked.y) > _MOST_Y:
        raise InvalidRequest("too many columns for one chart", expected=f"at most {_MOST_Y}", found=len(asked.y))
    if asked.kind is BinKind.LINE and not asked.y:
        raise InvalidRequest("a line needs a column of values", hint="Give y.")


def _field(schema: pa.Schema, number: int) -> pa.Field[AnyType]:
    if not 0 <= number < len(schema):
        raise InvalidRequest("the result has no such column", expected=f"0 to {len(schema) - 1}", found=number)
    return schema.field(number)


def _number(field: pa.Field[AnyType], name: str) -> str:
    """A column as a double; infinite times as null."""
    kind = field.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return f"CASE WHEN isfinite({name}) THEN epoch({name}) END"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind):
        return f"{name}::DOUBLE"
    raise InvalidRequest("not a column of numbers or times", expected="numbers or times", found=f"{field.name}: {kind}")


def _finite(value: str) -> str:
    return f"isfinite({value})"


def _is_binary(kind: AnyType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)


def _bin(value: str, low: str, half_span: str, bins: int) -> str:
    """The number of a value's bin. Halves are subtracted: the span of all doubles is no double."""
    place = f"floor(({value} * 0.5 - ${low}::DOUBLE * 0.5) / ${half_span}::DOUBLE * {bins:d})"
    return f"least({bins - 1:d}, greatest(0, {place}))::INTEGER"


def _half_span(low: float, high: float) -> float:
    return (high * 0.5 - low * 0.5) or 1.0


def _nice(low: float, high: float, bins: int, kind: AnyType) -> tuple[float, float, int]:
    """Where the first bin begins, the width of each, and how many there are: widths that people read easily."""
    width = high / bins - low / bins
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and width >= 1):
        days = _round_up(max(width, 1.0) / _DAY) * _DAY
        steps = (step for step in _TIME_STEPS if step >= width and not (pa.types.is_date(kind) and step < _DAY))
        width = float(next(steps, max(days, _DAY)))
    else:
        width = _round_up(width)
        if pa.types.is_integer(kind):
            width = max(1.0, width)
    begin = math.floor(low / width) * width
    if not math.isfinite(begin) or begin + width == begin:  # numbers so large that a bin is less than their last digit
        return low, max(high / bins - low / bins, math.ulp(low)), bins
    return begin, width, max(1, math.floor(high / width - begin / width) + 1)


def _round_up(width: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if width <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(width))
    return next((step * power for step in (1.0, 2.0, 5.0) if step * power >= width), 10 * power)


def _no_table(name: str, version: object, as_of: object) -> None:
    """Refuse any table: the count reads none of the lake's."""


def _no_names() -> Iterable[str]:
    none: Sequence[str] = ()
    return none

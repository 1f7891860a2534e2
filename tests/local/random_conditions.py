"""Random tables of every type and random conditions over them, for comparing engines and paths with each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from random import Random

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("i", pa.int64()),
        ("small", pa.int16()),
        ("u", pa.uint32()),
        ("f", pa.float64()),
        ("r", pa.float32()),
        ("s", pa.string()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
        ("ns", pa.timestamp("ns")),
        ("d", pa.date32()),
        ("t", pa.time64("us")),
        ("dec", pa.decimal128(9, 2)),
        ("b", pa.bool_()),
        ("bin", pa.binary()),
        ("st", pa.struct([("x", pa.int64()), ("Y", pa.string()), ("at", pa.timestamp("us"))])),
        ("l", pa.list_(pa.int64())),
        ("end", pa.int32()),
    ]
)
PARTITIONS = [
    [],
    ["month(ts)"],
    ["year(d)"],
    ["day(tz)"],
    ["bucket(4, i)"],
    ["truncate(2, s)"],
    ["year(ts)", "bucket(2, s)"],
    ["b"],
    ["truncate(10, i)"],
]
WHOLE = [0, 1, -1, 2, 3, 5, 7, 10, 99, -100, 12345]
REALS = [0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 1e300, -1e300, 1e-300, math.nan, math.inf, -math.inf, 2.0**53, 0.3]
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "AB",
    "aB",
    "abc",
    "b",
    "B",
    "ß",
    "İ",
    "i",
    "K",
    "k",
    "ſ",
    "é",
    "É",
    "a_b",
    "a%",
    "z" * 80,
    "\U0010ffff",
    "10",
]
DAYS = [
    date(2023, 12, 31),
    date(2024, 1, 1),
    date(2024, 1, 31),
    date(2024, 2, 29),
    date(2024, 3, 1),
    date(1969, 12, 31),
    date(1582, 10, 10),
    date(1, 1, 1),
    date(2100, 7, 4),
]
CLOCKS = [timedelta(0), timedelta(hours=12), timedelta(hours=23, minutes=59, seconds=59, microseconds=999_999)]


def moments(random: Random, first_year: int = 1) -> datetime:
    day = random.choice([one for one in DAYS if one.year >= first_year])
    return datetime(day.year, day.month, day.day) + random.choice(CLOCKS)


VALUES: dict[str, Callable[[Random], object]] = {
    "i": lambda random: random.choice([*WHOLE, 2**62, -(2**62)] if random.random() < 0.1 else WHOLE),
    "small": lambda random: random.choice([0, 1, -1, 5, 300, -300]),
    "u": lambda random: random.choice([0, 1, 2, 7, 2**32 - 1]),
    "f": lambda random: random.choice(REALS),
    "r": lambda random: random.choice([0.0, -0.0, 0.1, 1.5, -2.0, math.nan, math.inf]),
    "s": lambda random: random.choice(TEXTS),
    "ts": moments,
    "tz": lambda random: moments(random).replace(tzinfo=UTC),
    "ns": lambda random: moments(random, 1700),
    "d": lambda random: random.choice(DAYS),
    "t": lambda random: random.choice([time(0), time(12), time(23, 59, 59, 999_999)]),
    "dec": lambda random: random.choice([Decimal("0.00"), Decimal("1.10"), Decimal("-0.01"), Decimal("99999.99")]),
    "b": lambda random: random.random() < 0.5,
    "bin": lambda random: random.choice([b"", b"\1", b"\xff\0", b"ab"]),
    "st": lambda random: {
        "x": random.choice([None, *WHOLE]),
        "Y": random.choice([None, *TEXTS]),
        "at": moments(random),
    },
    "l": lambda random: [random.choice([None, *WHOLE]) for _ in range(random.randrange(3))],
    "end": lambda random: random.choice([1, 2, 3]),
}


def random_rows(random: Random, count: int, first: int) -> pa.Table:
    """Rows that lie close together now and then, so that blocks can be pruned, with a null here and there."""
    few = {name: [make(random) for _ in range(random.choice([1, 2, 6]))] for name, make in VALUES.items()}
    rows = [
        {
            "k": first + at,
            **{name: None if random.random() < 0.12 else random.choice(values) for name, values in few.items()},
        }
        for at in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


OPS = ["=", "<", "<=", ">", ">=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
NUMBERS = [
    "0",
    "1",
    "-1",
    "5",
    "7",
    "2.5",
    "0.1",
    "10.0",
    "1e0",
    "2.5e0",
    "-100",
    "12345",
    "1 + 1",
    "0.1::float",
    "'5'",
    "1.1",
    "300",
    "NULL",
    "2 * 3.5",
    "1::double / 3",
    "'nan'::double",
    "'inf'::double",
    "'inf'::double * 0",
    "true::int",
    "9007199254740993",
]
YEARS = [
    "2023",
    "2024",
    "2024.5",
    "1969",
    "1",
    "1582",
    "2100",
    "2000 + 24",
    "'2024'",
    "0",
    "-5",
    "99999",
    "NULL",
    "2023.0::double",
]
DATES = [
    "'2024-01-01'",
    "date '2024-02-29'",
    "date '2024-01-01' + 30",
    "'1969-12-31'",
    "'0001-01-01'",
    "timestamp '2024-01-31 12:00:00'",
    "date '2024-03-01' - interval 1 day",
    "'2100-07-04'",
    "'infinity'::date",
    "NULL",
    "'1582-10-10'",
]
TIMES = [
    "'2024-01-01'",
    "'2024-01-31 12:00:00'",
    "timestamp '2024-02-29 23:59:59.999999'",
    "timestamptz '2024-01-01 00:00:00+02'",
    "date '2024-03-01'",
    "timestamp '2024-01-01' + interval '1 month 2 days'",
    "'1969-12-31 23:59:59'",
    "'infinity'",
    "'-infinity'::timestamp",
    "timestamp_s '2024-01-01 00:00:00'",
    "make_timestamp(2024, 1, 31, 12, 0, 0)",
    "'1582-10-10'",
]
WORDS = [
    "'a'",
    "'A'",
    "'ab'",
    "'abc'",
    "''",
    "'b'",
    "'k'",
    "'K'",
    "'i'",
    "'s'",
    "'S'",
    "'ss'",
    "'é'",
    "'É'",
    "'z'",
    "'a' || 'b'",
    "NULL",
    "'zzzz'",
    "'\U0010ffff'",
    "lower('AB')",
    "'a%'",
]
PARTS = ["month", "year", "day", "hour", "week", "quarter", "decade", "century", "minute", "second"]
SHIFTS = [
    "interval 1 day",
    "interval '1 month'",
    "interval '13 months 3 days 2 hours'",
    "interval (-2) month",
    "interval 90 minute",
    "interval 1 year",
]

PATTERNS = ["$$a%$$", "$$A_%$$", "$$%b$$", "$$k%$$", "$$ab$$", "$$$$", "$$S%$$", "$$z%z$$"]
SHAPES = [
    "{}",
    "lower({})",
    "upper({})",
    "substr({}, 1, 2)",
    "left({}, 1)",
    "{}[1]",
    "{}[1:2]",
    "trim({})",
    "coalesce({}, 'a')",
    "{} || 'b'",
    "lower(left({}, 2))",
    "left(upper({}), 1)",
    "substring({}, 2, 1)",
]


class Conditions:
    """Makes conditions as text."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def __call__(self, depth: int = 2) -> str:
        one = self._random.random()
        if depth and one < 0.45:
            parts = [self(depth - 1) for _ in range(self._random.choice([2, 2, 3]))]
            return "(" + f" {self._random.choice(['AND', 'AND', 'OR'])} ".join(parts) + ")"
        if depth and one < 0.52:
            return f"NOT ({self(depth - 1)})"
        if one < 0.56:
            return f"({self._leaf()}) IS {self._pick(['TRUE', 'FALSE', 'NOT TRUE', 'NOT FALSE'])}"
        return self._leaf()

    def _pick(self, choices: list[str]) -> str:
        return self._random.choice(choices)

    def _leaf(self) -> str:
        make = self._random.choice(
            [
                self._number,
                self._number,
                self._time,
                self._time,
                self._day,
                self._year,
                self._text,
                self._text,
                self._rest,
            ]
        )
        return make()

    def _asked(self, left: str, literals: list[str]) -> str:
        way = self._random.random()
        if way < 0.6:
            right = self._pick(literals)
            return f"{left} {self._pick(OPS)} {right}" if way < 0.5 else f"{right} {self._pick(OPS[:6])} {left}"
        if way < 0.75:
            listed = ", ".join(self._pick(literals) for _ in range(self._random.choice([1, 2, 4])))
            return f"{left} {self._pick(['IN', 'IN', 'NOT IN'])} ({listed})"
        if way < 0.95:
            return f"{left} {self._pick(['', '', 'NOT '])}BETWEEN {self._pick(literals)} AND {self._pick(literals)}"
        return f"{left} IS {self._pick(['', 'NOT '])}NULL"

    def _number(self) -> str:
        column = self._pick(["i", "small", "u", "f", "r", "dec", "st.x", "st['x']", '"end"', "st.X"])
        for _ in range(self._random.choice([0, 1, 1, 2])):
            column = self._pick(
                [
                    f"{column} + 1", f"({column}) - 3", f"7 - ({column})", f"-({column})", f"({column}) * 2",
                    f"({column}) * -1.5", f"({column}) / 4", f"({column}) / -0.5", f"abs({column})",
                    f"round({column})", f"floor({column})", f"({column})::double", f"({column})::bigint",
                    f"try_cast({column} as smallint)", f"coalesce({column}, 5)", f"ifnull({column}, -1)",
                    f"nullif({column}, 1)", f"({column})::decimal(18, 3)", f"1e0 + ({column})", f"({column})::float",
                    f"round({column}, 1)", f"({column}) % 3", f"0.1 * ({column})", f"coalesce(NULL, {column})",
                ]
            )  # fmt: skip
        if self._random.random() < 0.05:
            return f"list_contains([1, 5, NULL, 7], {column})"
        if self._random.random() < 0.05:
            return f"{column} = ANY([1, 5, 12345])"
        return self._asked(column, NUMBERS)

    def _moment(self) -> str:
        column = self._pick(["ts", "tz", "ns", "st.at", "d"])
        if self._random.random() < 0.4:
            column = f"{column} {self._pick(['+', '-'])} {self._pick(SHIFTS)}"
        return column

    def _time(self) -> str:
        column = self._moment()
        if self._random.random() < 0.5:
            column = f"date_trunc('{self._pick(PARTS)}', {column})"
        elif self._random.random() < 0.3:
            column = self._pick([f"({column})::timestamp", f"({column})::timestamptz", f"({column})::timestamp_s"])
        elif self._random.random() < 0.2:
            column = f"({column}) AT TIME ZONE '{self._pick(['UTC', 'Europe/Warsaw', 'Asia/Kolkata'])}'"
        return self._asked(column, TIMES)

    def _day(self) -> str:
        column = self._pick([f"({self._moment()})::date", "d", "d + 1", "d - 30", "cast(tz as date)", "last_day(ts)"])
        return self._asked(column, DATES)

    def _year(self) -> str:
        if self._random.random() < 0.15:
            return self._asked(f"epoch({self._moment()})", ["0", "1704067200", "1706702400.5", "-86400", "1e9"])
        shape = self._pick(
            ["year({})", "extract(year from {})", "date_part('year', {})", "month({})", "extract(decade from {})"]
        )
        return self._asked(shape.format(self._moment()), YEARS)

    def _text(self) -> str:
        column = self._pick(["s", "s", "st.Y", "st['Y']"])
        way = self._random.random()
        if way < 0.2:
            return f"{column} {self._pick(['LIKE', 'ILIKE', 'NOT LIKE', 'NOT ILIKE'])} {self._pick(PATTERNS)}"
        if way < 0.3:
            test = self._pick(["starts_with", "prefix", "contains", "ends_with"])
            return f"{test}({self._shaped(column)}, {self._pick(WORDS)})"
        return self._asked(self._shaped(column), WORDS)

    def _shaped(self, column: str) -> str:
        return self._pick(SHAPES).format(column)

    def _rest(self) -> str:
        return self._pick(
            [
                "b", "NOT b", "b = true", "b = 1", "i = true", "i = small", "i < u", "f <> f", "f = r", "isnan(f)",
                "bin = '\\x01'::blob", "bin = X'FF00'", "length(s) = 1", "l[1] = 1", "list_contains(l, 5)",
                "len(l) = 1",
                "t < time '12:00:00'", "CASE WHEN i > 0 THEN b ELSE s = 'a' END", "1 = 1", "NULL", "i IS NULL",
                "ts < now()", "d < current_date - 365", "tz >= now() - interval '3 years'", "st IS NULL",
                "i::varchar = '5'", "greatest(i, 3) < 6", "hash(i) % 2 = 0", "strftime(d, '%Y') = '2024'",
            ]
        )  # fmt: skip

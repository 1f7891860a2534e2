"""Random rows of every kind of column, and conditions on them by what is understood of each."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

COLUMNS = (
    "k bigint, i bigint, small int, f double, r float, s string, ts timestamp, at_utc timestamptz, d date,"
    " money decimal(9,2), b boolean, st struct<x: bigint, y: string>, l list<bigint>, m map<string, bigint>,"
    " bin binary, id uuid"
)
TEXTS = ["abc", "ABC", "x%", "", "é", "a\\%", "10", "2024-01-02"]
DAYS = [date(2023, 12, 31), date(2024, 1, 1), date(2024, 1, 2), date(2024, 2, 29)]
TIMES = [*(datetime(day.year, day.month, day.day) for day in DAYS), datetime(2024, 1, 2, 13, 59, 59, 999_999)]


def random_row(random):
    """Every column null now and then, and otherwise a value that some condition asks for."""
    choices = {
        "i": range(-3, 25),
        "small": range(-3, 4),
        "f": [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 2.0, 0.1],
        "r": [0.0, -0.0, 0.5, math.nan, 0.1],
        "s": TEXTS,
        "ts": TIMES,
        "at_utc": TIMES,
        "d": DAYS,
        "money": [Decimal("1.10"), Decimal("-0.01"), Decimal("2.20")],
        "b": [True, False],
        "st": [{"x": x, "y": y} for x in (None, 1, 2) for y in (None, *TEXTS)],
        "l": [[], [None], [1], [2, 1], [1, 2, 3]],
        "m": [[], [("a", 1)], [("a", 2), ("b", 1)]],
        "bin": [b"", b"\1", b"\xff"],
        "id": [bytes(16), b"\xff" * 16],
    }
    return {name: None if random.random() < 0.15 else random.choice(values) for name, values in choices.items()}


CONSTANTS = [
    "f < 1.0::double", "i = 1::int", "r = 0.1::float", "r = 0.1", "i = 1+1", "i between 1 and 1+1", "1 = 1", "1 = 0",
    "NULL::boolean", "i = true", "b = 1", r"bin = '\x01'::blob", "i in (1, 1 + 1, NULL)", "i = '1'",
    "money = 1.1::double",
]  # fmt: skip
TIMES_OF = [
    "ts >= now() - interval '3 days'", "ts < now()", "d < current_date", "d = date '2024-01-01' + 1",
    "at_utc <= now()",
    "ts >= date '2024-01-01' + interval 1 day", "ts::date = '2024-01-02'", "date_trunc('month', ts) = '2024-01-01'",
    "year(ts) = 2024", "extract(month from d) = 1", "hour(at_utc) < 12", "d = ts", "ts > today()",
]  # fmt: skip
COMPUTED = [
    "i + 1 = 2", "i % 2 = 0", "-i < 0", "money * 2 = 2.2", "i = small", "i < small", "f <> f", "f = f", "f > 1 + 0",
    "lower(s) = 'abc'", "upper(s) > 'A'", "length(s) = 3", "s ilike 'a%'", "s ~ 'a.*'", "contains(s, 'b')",
    "s || 'x' = 'abcx'",
    r"s like 'a\%'", r"s like '%\%'", "coalesce(i, 0) = 0", "nullif(i, 1) is null", "abs(i) = 2", "isinf(f)",
    "round(f) = 2",
    "case when i > 3 then b else s = 'abc' end", "i = any([1, 2])", "try_cast(s as int) = 10",
    "i is distinct from small",
    "s collate nocase = 'abc'", "f + 0 <= 'nan'::double", "f * 1 = 'nan'", "id::varchar like '0%'", "not (i + 0 > 5)",
]  # fmt: skip
NESTED = [
    "st['x'] = 1", "st.x + 1 > 2", "l[1] = 2", "list_contains(l, 1)", "m['a'] = 1", "len(l) = 1",
    "st.y = 'abc' or b::int = 1",
    "len(list_filter(l, x -> x > 2)) > 0", "st = {'x': 1, 'y': 'abc'}",
]  # fmt: skip
MIXED = [
    "ts >= '2024-01-01' and lower(s) = 'abc'", "(i = 1 and lower(s) = 'abc') or i = 21",
    "not (i = 1 or lower(s) = 'abc')",
    "i > 1.5 or lower(s) = 'abc'", "I = 1 and S = upper(s)", "i = 1 and b = 1 -- a comment", "f >= 1 and f + 0 = f",
]  # fmt: skip

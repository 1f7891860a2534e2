"""The values of TRAPS.md side by side in one wide table, and the conditions that are asked of each column."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import cycle, islice

import pyarrow as pa

NAN = float("nan")
COUNT = 8
"""Rows; columns with fewer values repeat them."""
LONG = ("b" * 100, "b" * 99 + "c", "a")
EDGES = ("\U0010ffff" * 40, "\ud7ff" * 40, "é" * 33, "a" * 63 + "é" * 5, "\U0010ffff" * 40 + "z")
MOMENTS = (
    datetime(2020, 1, 1, 0, 0, 0, 123456),
    datetime(1969, 12, 31, 23, 59, 59, 999000),
    datetime(2021, 10, 31, 0, 30),
    datetime(1677, 9, 21, 0, 12, 43),
    datetime(2262, 4, 11, 23, 47, 16, 854776),
    datetime(1850, 5, 31, 22, 53, 28),
)
INNER = pa.struct([("x", pa.int64()), ("y", pa.float64())])

VALUES: dict[str, tuple[pa.DataType, tuple[object, ...]]] = {
    "t1": (pa.float64(), (1.0, NAN)),
    "t1_single": (pa.float32(), (1.0, NAN, None, 3.0)),
    "t3": (pa.float64(), (NAN, NAN)),
    "t3_null": (pa.float64(), (NAN, None)),
    "t5": (pa.float64(), (-0.0, 5.0)),
    "t5_plus": (pa.float64(), (0.0, -5.0)),
    "t5_single": (pa.float32(), (-0.0,)),
    "t8": (pa.float32(), (0.1, 0.3, 16777216.0, 1.5)),
    "t9": (pa.string(), LONG),
    "t10": (pa.string(), (*EDGES, "a")),
    "t10_bytes": (pa.binary(), (b"\xff" * 100, b"a", b"\xff" * 101)),
    "t12": (pa.string(), ("a" * 66,) * 4 + ("a" * 67,) * 4),
    "t13": (pa.timestamp("us"), MOMENTS),
    "t13_ms": (pa.timestamp("ms"), tuple(one.replace(microsecond=123000) for one in MOMENTS)),
    "t15": (pa.timestamp("us", "UTC"), MOMENTS),
    "t16": (pa.date32(), (date(1500, 3, 1), date(1582, 10, 4), date(1582, 10, 15), date(1, 1, 1), date(9999, 12, 31))),
    "t21": (pa.uint32(), (1, 2147483653)),
    "t21_wide": (pa.uint64(), (1, 9223372036854775813, 2**64 - 1, None)),
    "t22": (pa.decimal128(20, 2), (Decimal("-1.00"), Decimal("1.00"), None, Decimal("-99.99"))),
    "t22_small": (pa.decimal128(9, 2), (Decimal("-1.00"), Decimal("1.00"), None, Decimal("-99.99"))),
    "t24": (pa.int64(), (5, None, 5)),
    "t25_list": (pa.list_(pa.int64()), ([1, 2], [], None, [None, 9])),
    "t25_map": (pa.map_(pa.string(), pa.int64()), ([("k", 2)], [], None, [("q", None)])),
    "t25": (INNER, ({"x": 1, "y": NAN}, None, {"x": None, "y": -0.0}, {"x": 9, "y": 1.0})),
    "t27": (pa.int64(), tuple(range(0, 56, 7))),
    "t27_text": (pa.string(), ("9", "10", "100", "5", None)),
    "t28": (pa.string(), ("\uffff", "\U00010000", "é", "e\u0301", "a", "A", "a ", "")),
    "t30": (pa.string(), ("a", "a_b", "axb", "b", "", "\U0010ffffz", "%", None)),
    "truth": (pa.bool_(), (True, None, True, True)),
}

_NAN = (
    "{c} > 2", "{c} >= 1", "{c} <> 1", "not {c} < 2", "{c} not in (1)", "isnan({c})", "not isnan({c})", "{c} < 2",
    "{c} = double('NaN')", "{c} <> double('NaN')", "{c} < double('NaN')", "{c} in (7, double('NaN'))", "{c} is null",
    "{c} <=> 1", "not ({c} <=> 1)", "{c} between 2 and double('NaN')",
)  # fmt: skip
_ZERO = (
    "{c} = 0.0D", "{c} = -0.0D", "{c} < 0", "{c} > 0", "{c} >= 0", "{c} <= -0.0D", "{c} in (-0.0D, 7)", "{c} <> 0",
    "not ({c} <=> 0.0D)",
)  # fmt: skip
_CLOCK = (
    "{c} = {k} '2020-01-01 00:00:00.123'", "{c} > {k} '2020-01-01 00:00:00.123'",
    "{c} = {k} '2020-01-01 00:00:00.123456'", "{c} < {k} '1970-01-01'", "{c} >= {k} '1969-12-31 23:59:59.999001'",
    "{c} < {k} '1677-09-21 00:12:43.2'", "{c} > {k} '2262-04-11 23:47:16.854775'", "{c} = {k} '1850-05-31 22:53:28'",
    "{c} > {k} '1850-05-31 22:53:00' and {c} < {k} '1850-05-31 22:54:00'", "to_date({c}) = date '2021-10-31'",
    "{c} < date '1900-01-01'", "{c} = '2021-10-31 00:30:00'",
)  # fmt: skip
_MONEY = ("{c} < 0", "{c} > 0", "{c} = 1.000", "{c} > -0.995", "{c} >= 0.995D", "{c} = -1", "{c} < -99.989", "{c} <> 1")

ASKED: dict[str, tuple[str, ...]] = {
    "t1": _NAN,
    "t1_single": _NAN,
    "t3": _NAN,
    "t3_null": _NAN,
    "t5": _ZERO,
    "t5_plus": _ZERO,
    "t5_single": _ZERO,
    "t8": ("{c} > 0.1D", "{c} = 0.1D", "{c} = float('0.1')", "{c} = 0.1", "{c} <= 0.3", "{c} = 16777217"),
    "t9": tuple(f"{{c}} {op} '{'b' * n}'" for op, n in ((">", 60), ("=", 100), (">", 100), ("<=", 64), ("=", 64))),
    "t10": tuple(f"{{c}} {op} '{text}'" for text in EDGES[:4] for op in ("=", ">"))
    + tuple(f"startswith({{c}}, '{text}')" for text in EDGES[:4]),
    "t10_bytes": tuple(f"{{c}} {op} X'{'FF' * n}'" for op, n in (("=", 100), ("=", 101), (">", 100), (">", 64))),
    "t12": tuple(f"{{c}} {op} '{'a' * n}'" for op, n in ((">", 66), ("=", 67), ("<", 67), ("=", 66))),
    "t13": tuple(text.replace("{k}", "timestamp_ntz") for text in _CLOCK),
    "t13_ms": tuple(text.replace("{k}", "timestamp_ntz") for text in _CLOCK),
    "t15": (
        *(text.replace("{k}", "timestamp") for text in _CLOCK),
        "{c} = timestamp '2021-10-31 02:30:00+02:00'",
        "{c} = timestamp '1850-05-31 23:46:56+00:53:28'",
    ),
    "t16": (
        "{c} = date '1500-03-01'",
        "{c} < date '1582-10-15'",
        "{c} > date '1582-10-04'",
        "{c} = date '0001-01-01'",
        "{c} >= date '9999-12-31'",
    ),
    "t21": ("{c} > 2147483647", "{c} < 2", "{c} = 2147483653", "{c} > -1", "{c} <> 1", "{c} < 4294967296"),
    "t21_wide": ("{c} > 9223372036854775807", "{c} < 2", "{c} = 18446744073709551615", "{c} >= 9223372036854775813"),
    "t22": _MONEY,
    "t22_small": _MONEY,
    "t24": (
        "{c} <> 5",
        "{c} = 5",
        "not ({c} <=> 5)",
        "{c} is null",
        "{c} not in (5, null)",
        "{c} in (null, 6)",
        "{c} in (5, null)",
        "{c} is not null",
        "not ({c} = 5 or {c} is null)",
        "{c} = null",
    ),
    "t25_list": ("{c} is null", "{c} is not null", "array_contains({c}, 9)", "size({c}) = 0", "get({c}, 0) = 1"),
    "t25_map": ("{c} is null", "{c} is not null", "{c}['k'] = 2", "map_contains_key({c}, 'q')"),
    "t25": (
        "{c}.x = 1",
        "{c}.x is null",
        "{c} is null",
        "{c} is not null",
        "{c}.x <> 1",
        "{c}.y > 1",
        "{c}.y = 0.0D",
        "isnan({c}.y)",
        "{c}.x not in (1)",
    ),
    "t27": (
        "{c} % 8 = 2",
        "abs({c} - 25) = 4",
        "-{c} > -3",
        "{c} + 1 = 50",
        "cast({c} as string) = '7'",
        "{c} > 48.5",
        "{c} = '49'",
    ),
    "t27_text": ("cast({c} as int) > 5", "{c} > 5", "{c} = 10", "{c} > '5'", "length({c}) = 2"),
    "t28": (
        *(f"{{c}} {op} '{text}'" for text in ("\uffff", "\U00010000", "é", "a") for op in ("=", ">", "<=")),
        "{c} = ''",
        "upper({c}) = 'A'",
        "trim({c}) = 'a'",
        "{c} collate UTF8_LCASE = 'a'",
        "lower({c}) = 'a'",
    ),
    "t30": (
        "{c} like 'a%'",
        r"{c} like 'a\\_b%'",
        "{c} like 'a_b'",
        "{c} like '%'",
        "{c} like ''",
        "not {c} like 'a%'",
        "startswith({c}, '\U0010ffff')",
        "startswith({c}, '')",
        "{c} like '\U0010ffff%'",
        "{c} like '%b'",
        "{c} ilike 'A%'",
    ),
    "truth": ("{c}", "not {c}", "{c} is null", "{c} = true", "{c} <> true", "not ({c} <=> true)"),
}


def wide_rows(columns: tuple[str, ...] = tuple(VALUES)) -> pa.Table:
    """The columns, each of them repeated to the same length, and the number of the row as `n`."""
    arrays = {name: pa.array(list(islice(cycle(values), COUNT)), kind) for name, (kind, values) in VALUES.items()}
    return pa.table({**{name: arrays[name] for name in columns}, "n": pa.array(range(COUNT), pa.int64())})


def conditions(columns: tuple[str, ...] = tuple(VALUES)) -> tuple[str, ...]:
    """Everything that is asked of these columns."""
    return tuple(where.replace("{c}", name) for name in columns for where in ASKED[name])

"""The rows of a kept result, counted for a chart: the counts are those of the rows, and nobody else gets them."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.server.conftest import Served
from underlay.server.common.problem import Problem
from underlay.server.kept.rows_file import map_rows

MANY = """
    select i::bigint as i, timestamp '2024-01-01' + i * interval 1 minute as at, sin(i / 1000) as wave,
      'zone ' || (i % 30) as zone, case when i % 2 = 0 then 'even' else 'odd' end as parity, i / 7 as share,
      case i when 5 then 'NaN'::double when 6 then 'Infinity'::double when 7 then null else i % 10 end as small,
      [i] as list, i as i, date '2024-01-01' + (i // 1440)::int as day
    from range(20000) t(i)
"""
NUMBER, AT, WAVE, ZONE, PARITY, SHARE, SMALL, LIST, SAME_NAME, DAY = range(10)


def kept(client: httpx.Client, sql: str = MANY) -> str:
    found = client.post("/v1/statements", json={"sql": sql, "wait": 60, "limit": 0})
    assert found.status_code == 200, found.text
    return str(found.json()["id"])


@pytest.fixture(scope="module")
def many(served: Served) -> str:
    with served.client() as client:
        return kept(client)


def bins(client: httpx.Client, id: str, **asked: object) -> tuple[dict[str, object], list[dict[str, object]]]:
    answer = client.get(f"/v1/statements/{id}/bins", params={name: str(value) for name, value in asked.items()})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    names = [column["name"] for column in found["columns"]]
    return found, [dict(zip(names, row, strict=True)) for row in found["rows"]]


def test_a_histogram_counts_every_row_in_bins_of_a_round_width(client: httpx.Client, many: str):
    facts, rows = bins(client, many, kind="histogram", x=NUMBER, bins=40)
    assert (facts["low"], facts["width"], facts["bins"], facts["total"], facts["left_out"]) == (
        0.0,
        500.0,
        40,
        20000,
        0,
    )
    assert [one["bin"] for one in rows] == list(range(40))
    assert {one["count"] for one in rows} == {500}
    assert bins(client, many, kind="histogram", x=SAME_NAME, bins=40)[1] == rows


def test_rows_without_a_finite_value_are_counted_as_left_out(client: httpx.Client, many: str):
    facts, rows = bins(client, many, kind="histogram", x=SMALL, bins=40)
    assert (facts["left_out"], facts["width"]) == (3, 0.5)
    assert sum(int(str(one["count"])) for one in rows) == 19997
    facts, rows = bins(client, kept(client, "select null::double x, 'a' y"), kind="histogram", x=0)
    assert (facts["low"], facts["left_out"], rows) == (None, 1, [])
    facts, rows = bins(client, kept(client, "select 1 x where false"), kind="line", x=0, y=0)
    assert (facts["total"], rows) == (0, [])


def test_bins_of_days_are_not_shorter_than_days(client: httpx.Client, many: str):
    facts, rows = bins(client, many, kind="histogram", x=DAY, bins=40)
    assert (facts["low"], facts["width"]) == (1704067200.0, 86400.0)
    assert [one["count"] for one in rows] == [1440] * 13 + [20000 - 13 * 1440]


def test_a_line_has_the_least_the_greatest_and_the_mean_of_each_bin(client: httpx.Client, many: str):
    facts, rows = bins(client, many, kind="line", x=AT, y=f"{NUMBER},{WAVE}", bins=100)
    assert (facts["low"], len(rows)) == (1704067200.0, 100)
    assert [(one["min0"], one["max0"], one["avg0"]) for one in rows[:2]] == [(0, 199, 99.5), (200, 399, 299.5)]
    assert sum(int(str(one["count"])) for one in rows) == 20000
    assert all(-1 <= float(str(one["min1"])) <= float(str(one["max1"])) <= 1 for one in rows)


def test_each_value_of_the_series_is_a_line_and_the_most_frequent_are_kept(client: httpx.Client, many: str):
    facts, rows = bins(client, many, kind="line", x=AT, y=SHARE, series=PARITY, bins=10)
    assert facts["series"] == 2
    assert [one["series"] for one in rows] == ["even"] * 10 + ["odd"] * 10
    facts, rows = bins(client, many, kind="line", x=AT, y=SHARE, series=ZONE, bins=10)
    assert (facts["series"], len({one["series"] for one in rows})) == (30, 20)
    sql = "select * from (values (1, null), (2, ''), (3, 'NULL'), (4, null)) t(x, s)"
    _, rows = bins(client, kept(client, sql), kind="line", x=0, y=0, series=1, bins=3)
    assert sorted((str(one["series"]), one["count"]) for one in rows) == [
        ("", 1),
        ("NULL", 1),
        ("None", 1),
        ("None", 1),
    ]


def test_a_scatter_plot_counts_points_in_two_directions(client: httpx.Client, many: str):
    facts, rows = bins(client, many, kind="scatter", x=NUMBER, y=SHARE, bins=2000)
    assert (facts["bins"], facts["low_y"]) == (256, 0.0)
    assert sum(int(str(one["count"])) for one in rows) == 20000
    assert all(abs(int(str(one["bin"])) - int(str(one["bin_y"]))) <= 1 for one in rows)


def test_bars_are_the_fifty_largest_sums(client: httpx.Client, many: str):
    facts, rows = bins(client, many, kind="bar", x=ZONE, y=NUMBER)
    assert (facts["categories"], len(rows)) == (30, 30)
    assert rows[0] == {"category": "zone 19", "count": 667, "sum0": sum(range(19, 20000, 30))}
    facts, rows = bins(client, many, kind="bar", x=NUMBER, y=NUMBER)
    assert (facts["categories"], [one["category"] for one in rows[:2]], len(rows)) == (20000, ["19999", "19998"], 50)
    assert bins(client, many, kind="bar", x=PARITY)[1] == [
        {"category": "even", "count": 10000},
        {"category": "odd", "count": 10000},
    ]


def test_the_span_of_all_doubles_is_counted_too(client: httpx.Client):
    id = kept(client, "select unnest([-1.7e308, 0, 1.7e308]::double[]) as x")
    for kind, y in (("histogram", ""), ("line", "0"), ("scatter", "0")):
        _, rows = bins(client, id, kind=kind, x=0, y=y, bins=3)
        assert [one["count"] for one in rows] == [1, 1, 1], kind
    assert [one["count"] for one in bins(client, id, kind="histogram", x=0, bins=40)[1]] == [1, 1, 1]
    id = kept(client, "select unnest([9007199254740993, 9007199254740995]::bigint[]) as x")
    assert sum(int(str(one["count"])) for one in bins(client, id, kind="histogram", x=0)[1]) == 2
    id = kept(client, "select 5 as x, timestamp 'infinity' as t, timestamp 'epoch' as u")
    assert [one["count"] for one in bins(client, id, kind="line", x=0, y=0)[1]] == [1]
    assert bins(client, id, kind="line", x=1, y=0)[0]["left_out"] == 1
    assert bins(client, id, kind="histogram", x=2)[1] == [{"bin": 0, "count": 1}]


@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "pie", "x": 0},
        {"kind": "histogram", "x": 99},
        {"kind": "histogram", "x": ZONE},
        {"kind": "histogram", "x": 0, "bins": 2001},
        {"kind": "histogram", "x": 0, "bins": 0},
        {"kind": "line", "x": 0},
        {"kind": "line", "x": 0, "y": "-1"},
        {"kind": "line", "x": 0, "y": "1;drop"},
        {"kind": "line", "x": 0, "y": "0,0,0,0,0,0,0,0,0"},
        {"kind": "line", "x": 0, "y": 1, "series": 99},
        {"kind": "scatter", "x": 0},
        {"kind": "bar", "x": LIST},
        {"kind": "line", "y": 0},
    ],
)
def test_a_chart_that_cannot_be_is_refused(client: httpx.Client, many: str, asked: dict[str, object]):
    answer = client.get(f"/v1/statements/{many}/bins", params={name: str(value) for name, value in asked.items()})
    assert answer.status_code == 400, answer.text


def test_only_the_token_that_ran_the_statement_gets_its_bins(served: Served, many: str):
    for name, status in (("writer", 404), ("admin", 403)):
        with served.client(name) as other:
            answer = other.get(f"/v1/statements/{many}/bins", params={"x": "0"})
            assert (answer.status_code, "count" in answer.text) == (status, False)


def test_rows_that_were_forgotten_meanwhile_are_gone_and_their_place_is_not_told(tmp_path: Path):
    with pytest.raises(Problem) as refused:
        map_rows(str(tmp_path / "rows.arrow"))
    told = refused.value
    assert (told.status, told.code) == (410, "statement_gone")
    assert str(tmp_path) not in f"{told.detail} {told.hint}"

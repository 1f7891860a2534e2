from __future__ import annotations

import pytest

from tests.local.statements.lakes import change, rows_of, small_lake
from underlay.errors import BadPredicate, InvalidRequest, TableNotFound, UnknownColumn


@pytest.fixture
def lake():
    return small_lake()


def ids(lake):
    return [row[0] for row in rows_of(lake)]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("delete from taxi.trips where id = 1", [2, 3, 4, 5, 6]),
        ("DELETE FROM Taxi.TRIPS t WHERE t.fare >= 10", [4, 5, 6]),
        ("delete from taxi.trips as t where T.zone = 'JFK' or taxi.trips.fare is null", [2, 3, 5]),
        ("delete from taxi.trips where trips.zone = 'JFK' and year(date '2024-01-01') = 2024", [2, 3, 5, 6]),
        ("delete from taxi.trips where case when zone = 'EWR' then fare > 4 else id = 1 end", [2, 3, 4, 6]),
        ("delete from taxi.trips where zone is distinct from 'EWR'", [5, 6]),
        ("delete from taxi.trips where false", [1, 2, 3, 4, 5, 6]),
        ("delete from taxi.trips", []),
        ("truncate taxi.trips", []),
        ("truncate table taxi.trips;", []),
    ],
)
def test_delete_and_truncate(lake, text, left):
    done = change(lake, text)
    assert ids(lake) == left
    assert (done["affected"], done["deleted"], done["updated"], done["inserted"]) == (
        6 - len(left),
        6 - len(left),
        0,
        0,
    )
    assert done["version"] == (1 if len(left) == 6 else 2)


def test_parameters(lake):
    change(lake, "delete from taxi.trips where id = ? or zone = ?", [1, "EWR"])
    change(lake, "delete from taxi.trips where fare between $low and $HIGH", {"low": 20, "high": 25})
    assert ids(lake) == [3, 4]


def test_explain_counts_what_would_be_deleted_and_read(lake):
    text = repr(lake.sql("explain delete from taxi.trips where id = 1"))
    assert text.startswith("taxi.trips, version 1: would have 1 row deleted; 1 of 3 blocks read (")
    assert "would have 6 rows deleted; 0 of 3 blocks read" in repr(lake.sql("explain truncate taxi.trips"))
    assert "no row would change" in repr(lake.sql("explain delete from taxi.trips where id = 100"))
    assert lake.table("taxi.trips").version == 1


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("delete from taxi.trips where nope = 1", UnknownColumn, "line 1, column 30: there is no column nope"),
        ("delete from taxi.trips where id = 1 and\n(nope = 1)", UnknownColumn, "line 2, column 2: there is no column"),
        ("delete from taxi.trips where x.id = 1", UnknownColumn, "line 1, column 32: there is no column x.id"),
        ("delete from taxi.trips where\n id = 'abc'", BadPredicate, "line 2, column 7: id: a column of type int64"),
        ("delete from taxi.trips where id in (select nope from taxi.zones)", InvalidRequest, "column 44: Binder Error"),
        ("delete from taxi.trips where id in (select id from taxi.nope)", TableNotFound, "there is no table taxi.nope"),
        ("delete from taxi.trips where random() < 2", BadPredicate, "column 30: the function random is not available"),
        ("delete from taxi.trips where sum(id) > 2", BadPredicate, "line 1, column 30: "),
        ("delete from taxi.trips where id = 3 returning nope", InvalidRequest, "line 1, column 47: Binder Error"),
        ("delete from taxi.trips where id = 3 returning", InvalidRequest, "the statement ends too early"),
        ("delete from taxi.trips where id = 3 limit 1", InvalidRequest, "syntax error"),
        ("delete from taxi.trips where (id = 3", InvalidRequest, "syntax error"),
        ("delete from taxi.trips where", InvalidRequest, "line 1, column 29: the statement ends too early"),
        ("delete taxi.trips", InvalidRequest, "line 1, column 8: not SQL that is understood"),
        ("delete from taxi.trips version as of 1", InvalidRequest, "line 1, column 24: a version never changes"),
        ("delete from taxi.nope where true", TableNotFound, "line 1, column 13: there is no table taxi.nope"),
        ("truncate taxi.trips, taxi.zones", InvalidRequest, "line 1, column 20: not SQL that is understood"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place_and_changes_nothing(lake, text, error, message):
    with pytest.raises(error) as refused:
        lake.sql(text)
    assert message in str(refused.value)
    assert lake.table("taxi.trips").version == 1


@pytest.mark.parametrize(
    "condition",
    [
        "getenv('HOME') = 'x'",
        "zone in (select content from read_text('/etc/passwd'))",
        "zone = (table x)",
        "exists (from read_csv('/etc/passwd'))",
        "write_log('x') is null",
        "write_log\u200b('x') is null",
        "nextval('x') = 1",
    ],
)
def test_conditions_reach_nothing_but_the_row(lake, condition):
    with pytest.raises((InvalidRequest, TableNotFound)):
        lake.sql(f"delete from taxi.trips where {condition}")
    assert lake.table("taxi.trips").version == 1

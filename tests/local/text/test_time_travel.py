from __future__ import annotations

from datetime import UTC, datetime

import pytest

from underlay.errors import InvalidRequest
from underlay.local.text.time_travel import rewrite_time_travel

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def rewritten(text: str) -> str:
    return " ".join(rewrite_time_travel(text).text.split())


def versions(text: str) -> list[tuple[str, str, int | None, datetime | None]]:
    return [(one.dataset, one.table, one.version, one.as_of) for one in rewrite_time_travel(text).travels]


@pytest.mark.parametrize(
    "clause", ["VERSION AS OF 7", "for version as of 7", "AT (VERSION => 7)", "version /* x */ as\n of 7"]
)
@pytest.mark.parametrize("alias", ["", " AS t", " t"])
def test_a_version_by_number(clause, alias):
    text = f"select * from taxi.trips {clause}{alias}"
    assert rewritten(text) == f'select * from "taxi@7".trips{alias}'
    assert versions(text) == [("taxi", "trips", 7, None)]


@pytest.mark.parametrize(
    "clause",
    [
        "TIMESTAMP AS OF '2026-01-01'",
        "FOR TIMESTAMP AS OF '2026-01-01 00:00:00'",
        "TIMESTAMP AS OF TIMESTAMP '2026-01-01'",
        "timestamp as of date '2026-01-01'",
        "TIMESTAMP AS OF '2026-01-01T01:00:00+01:00'",
        "AT (TIMESTAMP => TIMESTAMP '2026-01-01Z')",
    ],
)
def test_a_version_as_of_a_moment(clause):
    if clause.endswith("Z')"):
        clause = clause.replace("2026-01-01Z", "2026-01-01 00:00Z")
    assert versions(f"from taxi.trips {clause} where x") == [("taxi", "trips", None, NEW_YEAR)]


def test_quoted_names_are_names():
    text = 'from "taxi"."trips" version as of 7'
    assert rewritten(text) == 'from "taxi@7"."trips"'
    assert versions(text) == [("taxi", "trips", 7, None)]


def test_several_versions_in_one_query_stand_for_themselves():
    text = "from taxi.trips version as of 7 a, taxi.trips version as of 8 b, taxi.trips c, taxi.trips version as of 7 d"
    assert rewritten(text) == 'from "taxi@7".trips a, "taxi@8".trips b, taxi.trips c, "taxi@7".trips d'
    assert [version for _, _, version, _ in versions(text)] == [7, 8]


def test_all_other_text_stays_as_it_is():
    text = "select 'é',\n\t\"A b\" -- taxi.trips version as of 1\nfrom taxi.trips  version as of 7\n where x = $$a$$"
    clause = "version as of 7"
    expected = text.replace("from taxi.trips", 'from "taxi@7".trips').replace(f"  {clause}\n", f"  {' ' * 15}\n")
    assert rewrite_time_travel(text).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "select 'from taxi.trips version as of 7'",
        "select 1 -- from taxi.trips version as of 7",
        "select 1 /* from taxi.trips version as of 7 */",
        "select $$ from taxi.trips version as of 7 $$",
        'select "version as of 7" from taxi.trips',
        "select version as of_it, timestamp as t from taxi.trips",
    ],
)
def test_text_comments_and_names_are_left_alone(text):
    assert rewrite_time_travel(text).text == text
    assert versions(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "from trips version as of 7",
        "from taxi.trips version as of",
        "from taxi.trips version as of x",
        "from taxi.trips version as of 7.5",
        "from taxi.trips timestamp as of 7",
        "from taxi.trips timestamp as of 'yesterday'",
        "from taxi.trips at (version => 7",
        "from taxi.trips version as of '7",
    ],
)
def test_a_clause_that_cannot_be_read_is_refused(text):
    with pytest.raises(InvalidRequest):
        rewrite_time_travel(text)

"""The taxi guide's commands run on files that differ from month to month as those that TLC publishes do."""

from __future__ import annotations

import re
import shlex
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import underlay
from underlay.api.lake import connect

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "taxi.md"
MONTH_ROWS = 3


def write_month(
    folder: Path,
    month: int,
    *,
    vendor: pa.DataType,
    passengers: pa.DataType,
    time: pa.DataType,
    text: pa.DataType,
    fee: str | None,
    more: tuple[str, ...] = (),
) -> None:
    """A month of trips, the first of which says nothing of its passengers."""
    begin = datetime(2024, month, 14)
    pickups = [begin + timedelta(hours=9 * at) for at in range(MONTH_ROWS)]
    columns = {
        "VendorID": pa.array([1, 2, 2], vendor),
        "tpep_pickup_datetime": pa.array(pickups, pa.timestamp("us")).cast(time),
        "tpep_dropoff_datetime": pa.array([at + timedelta(minutes=7) for at in pickups], pa.timestamp("us")).cast(time),
        "passenger_count": pa.array([None, 1, 2], passengers),
        "store_and_fwd_flag": pa.array(["N", None, "Y"], text),
        "PULocationID": pa.array([132, 138, 161], vendor),
        "tip_amount": pa.array([0.0, 2.5, 1.25]),
    }
    if fee is not None:
        columns[fee] = pa.array([None, 1.75, 0.0])
    columns |= {name: pa.array([0.75] * MONTH_ROWS) for name in more}
    pq.write_table(pa.table(columns), folder / f"yellow_tripdata_2024-{month:02}.parquet")


@pytest.fixture
def months(place: Path) -> Path:
    """Four months in the current directory's folder `trips`, none like the one before."""
    folder = place / "trips"
    folder.mkdir()
    us, ns = pa.timestamp("us"), pa.timestamp("ns")
    write_month(folder, 1, vendor=pa.int32(), passengers=pa.int64(), time=us, text=pa.large_string(), fee="Airport_fee")
    write_month(folder, 2, vendor=pa.int64(), passengers=pa.float64(), time=ns, text=pa.string(), fee="airport_fee")
    write_month(folder, 3, vendor=pa.int32(), passengers=pa.float64(), time=us, text=pa.large_string(), fee=None)
    write_month(
        folder, 4, vendor=pa.int64(), passengers=pa.int64(), time=us, text=pa.string(), fee="Airport_fee",
        more=("cbd_congestion_fee",),
    )  # fmt: skip
    return folder


def commands() -> list[list[str]]:
    """The guide's commands on this machine, as words."""
    lines = re.findall(r"^\$ underlay (.*)$", GUIDE.read_text(), re.MULTILINE)
    local = [shlex.split(line, comments=True) for line in lines if "s3://" not in line and "--master" not in line]
    assert [words[0] for words in local] == ["init", "create", "ingest", "ingest", "ingest", "sql", "sql", "plan"]
    return local


def test_the_guides_commands_run_on_months_as_they_are_published(place: Path, months: Path):
    outcomes = [underlay(*words) for words in commands()]
    for words, found in zip(commands(), outcomes, strict=True):
        assert found.code == 0, (words, found.words)
    assert "nothing to do" in outcomes[4].words
    assert str(4 * MONTH_ROWS) in outcomes[5].text
    rows = connect(place / "lake").table("taxi.trips").to_arrow().sort_by("tpep_pickup_datetime").to_pylist()
    assert [row["passenger_count"] for row in rows] == [None, 1, 2] * 4
    assert [row["Airport_fee"] for row in rows] == [*[None, 1.75, 0.0] * 2, *[None] * 3, None, 1.75, 0.0]
    assert [row["cbd_congestion_fee"] for row in rows] == [*[None] * 9, *[0.75] * 3]
    assert rows[4]["tpep_pickup_datetime"] == datetime(2024, 2, 14, 9)
    assert "airport_fee" not in rows[0]


def test_a_row_that_does_not_fit_is_rejected_and_its_month_ingested(place: Path, months: Path):
    odd = pq.read_table(months / "yellow_tripdata_2024-02.parquet")
    at = odd.column_names.index("passenger_count")
    pq.write_table(
        odd.set_column(at, "passenger_count", pa.array([1.5, 1.0, 2.0])), months / "yellow_tripdata_2024-02.parquet"
    )
    for words in commands()[:4]:
        underlay(*words)
    lake = connect(place / "lake")
    assert lake.table("taxi.trips").count() == 4 * MONTH_ROWS - 1
    [rejected] = lake.table("taxi.trips_rejected").to_arrow().to_pylist()
    assert rejected["line"] == 1
    assert rejected["reason"] == "column passenger_count: a value does not fit the column's type: 1.5"

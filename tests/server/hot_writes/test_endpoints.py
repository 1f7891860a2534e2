"""Rows over HTTP: the official clients of QuestDB and InfluxDB unchanged, NDJSON, rights, limits, and every refusal."""

from __future__ import annotations

import base64
import gzip
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from influxdb_client.client.influxdb_client import InfluxDBClient
from influxdb_client.client.write.point import Point
from influxdb_client.client.write_api import SYNCHRONOUS, WriteOptions
from influxdb_client.domain.write_precision import WritePrecision
from influxdb_client.rest import ApiException
from questdb import Sender, ServerTimestamp, TimestampMicros, TimestampNanos

import underlay as ul
from tests.server.conftest import Served, running
from underlay.errors import LeaseHeld
from underlay.server.common.hot_settings import HotSettings

SECOND = 1_700_000_000
NANOSECOND = SECOND * 10**9
NOW = datetime.fromtimestamp(SECOND, UTC)


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("hot")
    with running(folder, hot=HotSettings(folder=folder / "hot", body_bytes=4 << 20)) as served:
        yield served


def rows(served: Served, table: str, order: str = "timestamp") -> list[dict[str, Any]]:
    """What the server's workers see."""
    with served.client("admin") as client:
        answer = client.post("/v1/sql", json={"sql": f"select * from {table} order by {order}", "shape": "objects"})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["rows"]
    return found


def exists(served: Served, table: str) -> bool:
    return table in {one.name for one in served.lake.tables()}


def scanned(served: Served, table: str, column: str) -> list[int]:
    """A column's times as they are stored; SQL rounds nanoseconds."""
    with ul.connect(served.settings.lake, registry="none", hot=served.folder / "hot") as lake:
        return lake.table(table).to_arrow().sort_by("timestamp").column(column).cast("int64").to_pylist()


def sender(served: Served, name: str = "admin", **more: str) -> Sender:
    address = served.url.removeprefix("http://")
    options = "".join(f"{key}={value};" for key, value in more.items())
    credentials = "" if "username" in more else f"token={served.tokens[name]};"
    return Sender.from_conf(f"http::addr={address};{credentials}retry_timeout=0;{options}")


def post(served: Served, path: str, body: bytes | str, name: str | None = "admin", **headers: str) -> httpx.Response:
    with served.client(name) as client:
        return client.post(path, content=body, headers={key.replace("_", "-"): value for key, value in headers.items()})


@pytest.mark.parametrize("version", ["auto", "1", "2", "3"])
def test_the_client_of_questdb_writes_rows_that_are_queryable_when_it_returns(hot: Served, version: str):
    table = f"trades_{version}"
    with sender(hot, protocol_version=version) as client:
        for at in range(20):
            client.row(
                table,
                symbols={"pair": "ETH=USD, or so", "side": f"s\\{at % 2}"},
                columns={"price": at / 3, "amount": at, "big": at % 2 == 0, "note": f'a "{at}"\n\\'},
                at=TimestampNanos(NANOSECOND + at * 1000),
            )
        client.flush()
        found = rows(hot, f"hot.{table}")
    assert [row["price"] for row in found] == [at / 3 for at in range(20)]
    assert found[3] == {
        "timestamp": "2023-11-14T22:13:20.000003Z",
        "pair": "ETH=USD, or so",
        "side": "s\\1",
        "price": 1.0,
        "amount": 3,
        "big": False,
        "note": 'a "3"\n\\',
    }


def test_the_client_of_questdb_sends_frames_arrays_decimals_and_times(hot: Served):
    frame = pd.DataFrame(
        {
            "pair": pd.Categorical(["ETH-USD", "BTC-USD"]),
            "price": [2615.54, float("nan")],
            "when": pd.to_datetime(["2024-01-01", "2024-01-02"]),
        }
    )
    with sender(hot) as client:
        client.dataframe(frame, table_name="shop.frames", symbols=["pair"], at="when")
        client.row(
            "shop.shapes",
            columns={
                "book": np.array([[1.0, 2.0], [3.0, 4.0]]),
                "cost": Decimal("12.345"),
                "seen": NOW,
                "exact": TimestampNanos(NANOSECOND + 1),
            },
            at=TimestampMicros(SECOND * 10**6),
        )
        client.row("shop.shapes", columns={"cost": Decimal("-1.5")}, at=TimestampMicros(SECOND * 10**6 + 1))
    assert [row["price"] for row in rows(hot, "shop.frames")] == [2615.54, "NaN"]
    shapes = rows(hot, "shop.shapes")
    assert shapes[0]["book"] == [[1.0, 2.0], [3.0, 4.0]]
    assert [Decimal(row["cost"]) for row in shapes] == [Decimal("12.345"), Decimal("-1.5")]
    assert shapes[0]["seen"].startswith("2023-11-14T22:13:20")
    assert scanned(hot, "shop.shapes", "exact")[0] == NANOSECOND + 1


def test_rows_without_a_time_have_the_servers(hot: Served):
    before = datetime.now(UTC) - timedelta(minutes=1)
    with sender(hot, username="anybody", password=hot.tokens["admin"]) as client:
        client.row("now", columns={"f": 1.0}, at=ServerTimestamp)
    (row,) = rows(hot, "hot.now")
    assert datetime.fromisoformat(row["timestamp"]) > before


def test_the_client_of_questdb_shows_what_is_wrong(hot: Served):
    with sender(hot, auto_flush="off") as client:
        client.row("types", columns={"v": 1}, at=TimestampNanos(NANOSECOND))
        client.flush()
        client.row("types", columns={"v": 2}, at=TimestampNanos(NANOSECOND))
        client.row("types", columns={"v": "text"}, at=TimestampNanos(NANOSECOND))
        with pytest.raises(Exception, match=r"error in line 2: the field v is a text here.*line: 2"):
            client.flush()
    assert len(rows(hot, "hot.types")) == 1


@pytest.mark.parametrize("gzipped", [False, True])
def test_the_client_of_influxdb_writes_to_the_bucket_as_a_dataset(hot: Served, gzipped: bool):
    table = f"cpu_{int(gzipped)}"
    with InfluxDBClient(hot.url, token=hot.tokens["admin"], org="any", enable_gzip=gzipped) as client:
        assert client.ping()
        with pytest.warns(DeprecationWarning, match="deprecated"):
            assert client.health().status == "pass"
        assert client.version().startswith("underlay-")
        api = client.write_api(write_options=SYNCHRONOUS)
        for precision, count in ((WritePrecision.S, SECOND), (WritePrecision.MS, SECOND * 1000 + 1)):
            point: Any = Point(table).tag("host", "a b,c=d")  # type: ignore[no-untyped-call]
            point = point.field("usage", 1.5).field("n", 7).field("ok", True).field("s", 'x "y" \\')
            api.write("telegraf", record=point.time(count, precision), write_precision=precision)
        api.write(
            "telegraf", record=f"{table},host=h usage=2 {NANOSECOND + 2_000_000}\n{table} n=8i {NANOSECOND + 3_000_000}"
        )
    found = rows(hot, f"telegraf.{table}")
    assert [row["usage"] for row in found] == [1.5, 1.5, 2.0, None]
    assert found[1] == {
        "timestamp": "2023-11-14T22:13:20.001000Z",
        "host": "a b,c=d",
        "usage": 1.5,
        "n": 7,
        "ok": True,
        "s": 'x "y" \\',
    }


def test_the_client_of_influxdb_signs_in_and_batches(hot: Served):
    with InfluxDBClient(hot.url, username="ada", password=hot.tokens["admin"], org="any") as client:
        failed: list[object] = []
        api = client.write_api(
            write_options=WriteOptions(batch_size=10), error_callback=lambda *what: failed.append(what)
        )
        for at in range(25):
            api.write("telegraf", "any", f"batched f={at} {NANOSECOND + at * 1000}")
        api.close()
    assert failed == []
    assert [row["f"] for row in rows(hot, "telegraf.batched")] == list(range(25))


def test_the_client_of_influxdb_shows_what_is_wrong(hot: Served):
    with InfluxDBClient(hot.url, token=hot.tokens["admin"], org="any") as client:
        api = client.write_api(write_options=SYNCHRONOUS)
        with pytest.raises(ApiException) as caught:
            api.write("telegraf", record="bad f=1 1\nbad f= 2")
        assert caught.value.status == 400
        assert caught.value.message.startswith("unable to parse 'bad f= 2': missing field value: line 2, column 7")
        api.write("telegraf", record=f"conflict v=1i {NANOSECOND}")
        with pytest.raises(ApiException) as caught:
            api.write("telegraf", record=f"conflict v=1i {NANOSECOND}\nconflict v=1.5 {NANOSECOND}")
        assert caught.value.status == 422
        assert "line 2, column 10" in caught.value.message
    assert len(rows(hot, "telegraf.conflict")) == 1


def test_influxdb_1_names_a_database(hot: Served):
    answer = post(hot, "/write?db=old/autogen&precision=s&u=x&p=y", f"load v=1 {SECOND}\nload v=2 {SECOND + 1}")
    assert answer.status_code == 204, answer.text
    assert [row["v"] for row in rows(hot, "old.load")] == [1.0, 2.0]
    refused = post(hot, "/write?db=old", "load v=")
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("unable to parse 'load v='")
    assert refused.headers["x-influxdb-error"] == refused.json()["error"]


def test_every_faulty_line_is_named_and_nothing_is_written(hot: Served):
    body = f"many f=1 {NANOSECOND}\nmany f=\nmany f=2 {NANOSECOND}\nmany,a=1,a=2 f=1\nother g=1 {NANOSECOND}"
    for path in ("/write", "/api/v2/write?bucket=hot"):
        answer = post(hot, path, body)
        assert answer.status_code == 400
        assert [(one["line"], one["column"]) for one in answer.json()["errors"]] == [(2, 8), (4, 10)]
    assert not exists(hot, "hot.many")
    assert not exists(hot, "hot.other")


def test_a_fault_in_a_table_that_exists_leaves_other_tables_as_they_are(hot: Served):
    assert post(hot, "/write", f"first v=1i {NANOSECOND}").status_code == 204
    answer = post(hot, "/write", f'brand_new v=1 {NANOSECOND}\nfirst v="x",w=1 {NANOSECOND}')
    assert (answer.status_code, answer.json()["line"]) == (400, 2)
    assert not exists(hot, "hot.brand_new")
    assert hot.lake.table("hot.first").schema.names == ["timestamp", "v"]


def test_new_columns_come_with_their_first_value(hot: Served):
    for body in (f"grows a=1 {NANOSECOND}", f"grows a=2,b=1i {NANOSECOND + 1000}\ngrows,c=x a=3 {NANOSECOND + 2000}"):
        assert post(hot, "/write", body).status_code == 204
    assert [tuple(row.values())[1:] for row in rows(hot, "hot.grows")] == [
        (1.0, None, None),
        (2.0, 1, None),
        (3.0, None, "x"),
    ]


def test_numbers_fit_exactly_or_not_at_all(hot: Served):
    hot.lake.create_table("hot.exact", "timestamp timestamp, small smallint, real double, word string")
    assert post(hot, "/write", f'exact small=7i,real=7i,word="x" {NANOSECOND}').status_code == 204
    for body in (
        "exact small=70000i",
        "exact small=1.5",
        "exact real=9007199254740993i",
        "exact word=1",
        "exact word=t",
    ):
        answer = post(hot, "/write", f"{body} {NANOSECOND}")
        assert (answer.status_code, answer.json()["line"]) == (400, 1), body
        assert answer.json()["errors"][0]["column"] == 7
    assert len(rows(hot, "hot.exact")) == 1


def test_nanoseconds_are_kept_by_new_tables_cut_for_questdb_and_refused_for_influxdb(hot: Served):
    assert post(hot, "/write", f"fine f=1 {NANOSECOND + 1}").status_code == 204
    assert scanned(hot, "hot.fine", "timestamp") == [NANOSECOND + 1]
    assert post(hot, "/write", f"coarse f=1 {NANOSECOND}").status_code == 204
    assert post(hot, "/write", f"coarse f=2 {NANOSECOND + 1999}").status_code == 204
    assert rows(hot, "hot.coarse")[1]["timestamp"] == "2023-11-14T22:13:20.000001Z"
    answer = post(hot, "/api/v2/write?bucket=hot", f"coarse f=3 {NANOSECOND + 1}")
    assert answer.status_code == 422, answer.text
    assert len(rows(hot, "hot.coarse")) == 2


def test_ndjson_goes_to_its_table(hot: Served):
    lines = [{"timestamp": datetime(2026, 1, day, tzinfo=UTC).isoformat(), "zone": "JFK", "n": day} for day in (1, 2)]
    body = "\n".join(map(json.dumps, lines))
    answer = post(hot, "/write?table=shop.events", body, Content_Type="application/x-ndjson")
    assert answer.status_code == 204, answer.text
    more = json.dumps({**lines[0], "fare": 1.5})
    assert post(hot, "/write?table=shop.events", more, Content_Type="application/x-ndjson").status_code == 204
    assert [(row["n"], row["fare"]) for row in rows(hot, "shop.events", "timestamp, fare nulls first")] == [
        (1, None),
        (1, 1.5),
        (2, None),
    ]
    wrong = body + '\n{"timestamp": "never", "zone": 1}'
    refused = post(hot, "/write?table=shop.events", wrong, Content_Type="application/x-ndjson")
    assert (refused.status_code, refused.json()["line"]) == (400, 3)
    assert len(rows(hot, "shop.events")) == 3
    timeless = post(hot, "/write?table=shop.timeless", '{"n": 1}', Content_Type="application/x-ndjson")
    assert timeless.status_code == 400
    assert "needs a timestamp" in timeless.json()["message"]


def test_rights_are_the_tokens(hot: Served):
    line = f"orders_hot v=1 {NANOSECOND}"
    for name, path, status in (
        (None, "/write", 401),
        ("reader", "/write", 403),
        ("reader", "/api/v2/write?bucket=shop", 403),
        ("writer", "/api/v2/write?bucket=shop", 204),
        ("writer", "/api/v2/write?bucket=secret", 403),
        ("writer", "/write", 403),
    ):
        answer = post(hot, path, line, name)
        assert answer.status_code == status, (name, path, answer.text)
    assert not exists(hot, "secret.orders_hot")
    for header in ("Token nothing", "Basic !!", f"Basic {base64.b64encode(b'a:wrong').decode()}", "Digest x"):
        assert post(hot, "/write", line, None, Authorization=header).status_code == 401


def test_bodies_are_bounded_also_inside_gzip(hot: Served):
    large = b"m f=1\n" * (1 << 20)
    assert post(hot, "/write", large).status_code == 413
    packed = gzip.compress(large)
    assert len(packed) < 100_000
    assert post(hot, "/write", packed, Content_Encoding="gzip").status_code == 413
    assert post(hot, "/write", packed[:-9], Content_Encoding="gzip").status_code in (400, 413)
    assert post(hot, "/write", b"no gzip", Content_Encoding="gzip").status_code == 400
    small = gzip.compress(f"zipped f=1 {NANOSECOND}".encode())
    assert post(hot, "/write", small[:-3], Content_Encoding="gzip").status_code == 400
    assert post(hot, "/write", small, Content_Encoding="br").status_code == 415
    assert post(hot, "/write", small, Content_Encoding="gzip").status_code == 204
    assert post(hot, "/write", b"").status_code == 204


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tra\\ des f=1", "is not a name for a table"),
        ("m f=1 1 1", "unexpected"),
        ("m,timestamp=x f=1", "has the name of the table's time"),
        ("m a=1,A=2", "differ only in case"),
        ("m f=1 9223372036854775807", "years 1 to 9999|too far|time"),
    ],
)
def test_names_and_times_that_no_table_has(hot: Served, line: str, words: str):
    answer = post(hot, "/write?precision=s" if line.endswith("5807") else "/write", line)
    assert answer.status_code == 400, answer.text
    assert re.search(words, answer.json()["message"]), answer.text
    assert post(hot, "/write?precision=days", "m f=1").status_code == 400


def test_writers_in_parallel_share_commits_and_lose_nothing(hot: Served):
    def write(number: int) -> int:
        with hot.client("admin") as client:
            return [
                client.post(
                    "/write", content=f"storm,by=w{number} n={at}i {NANOSECOND + number * 1000 + at}"
                ).status_code
                for at in range(25)
            ].count(204)

    with ThreadPoolExecutor(8) as pool:
        acknowledged = sum(pool.map(write, range(8)))
    found = rows(hot, "hot.storm")
    assert acknowledged == len(found) == 200
    assert {(row["by"], row["n"]) for row in found} == {(f"w{number}", at) for number in range(8) for at in range(25)}


def test_there_is_one_writer_for_a_table(hot: Served):
    assert post(hot, "/write", f"single f=1 {NANOSECOND}").status_code == 204
    with ul.connect(hot.settings.lake, registry="none", hot=hot.folder / "hot") as lake, pytest.raises(LeaseHeld):
        lake.table("hot.single").hot()


def test_too_many_writes_of_a_token_and_too_much_in_memory_are_told_to_come_back(tmp_path: Path):
    settings = HotSettings(folder=tmp_path / "hot", per_token=1, waiting_bytes=1000)
    with running(tmp_path, hot=settings) as served:
        assert post(served, "/write", f"m f=1 {NANOSECOND}").status_code == 204
        service = served.server.config.app.state.hot
        with service.admit("someone", "900"):
            busy = post(served, "/write", "m f=1 1\n" * 100)
            assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
        held = threading.Event()
        release = threading.Event()

        def slow() -> Iterator[bytes]:
            yield b"m f=2 "
            held.set()
            release.wait(60)
            yield str(NANOSECOND).encode()

        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(post, served, "/write", slow())  # type: ignore[arg-type]  # httpx takes parts too
            held.wait(60)
            while not service._of_token:
                pass
            refused = post(served, "/write", "m f=3 1")
            release.set()
            assert first.result().status_code == 204
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert len(rows(served, "hot.m")) == 2


def test_a_server_that_only_reads_refuses_rows(tmp_path: Path):
    with running(tmp_path, is_writable=False, hot=HotSettings(folder=tmp_path / "hot")) as served:
        assert post(served, "/write", f"m f=1 {NANOSECOND}").status_code == 403
        with served.client("reader") as client:
            assert client.get("/settings").json()["config"]["accepting.writes"] == []

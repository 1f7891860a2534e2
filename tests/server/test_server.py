"""What the server answers, and what it refuses: real requests to a real server with real workers."""

from __future__ import annotations

import io
import json

import httpx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

import underlay.client
from tests.gate import sized
from tests.server.conftest import PATIENCE, Served, run, wait_until
from underlay.errors import (
    Forbidden,
    InvalidRequest,
    TableNotFound,
    Unavailable,
    UnknownColumn,
)

ENDLESS = "select count(*) from range(100000000000) a, range(100000000000) b"
LATE = "select cast(case when i = 900000 then 'x' else '1' end as int) n from range(1000000) t(i)"


def test_a_statement_answers_columns_rows_and_versions(client: httpx.Client):
    found = run(client, "select max(id) m, sum(price) s from shop.orders").json()
    assert found["rows"] == [[4999, "3124375.00"]]
    assert [column["type"] for column in found["columns"]] == ["bigint", "decimal(38,2)"]
    assert found["tables"] == [{"name": "shop.orders", "version": 1}]
    assert (found["row_count"], found["truncated"]) == (1, False)


def test_parameters_are_bound_by_name_and_by_place(client: httpx.Client):
    assert run(client, "select $a + 1 x, $b y", parameters={"a": 1, "b": "'; --"}).json()["rows"] == [[2, "'; --"]]
    typed = {"value": "12.50", "type": "decimal(9,2)"}
    found = run(client, "select ? a", parameters=[typed]).json()
    assert found["rows"] == [["12.50"]]
    assert run(client, "select ?", parameters=[{"value": 1, "type": "int); select 1"}]).status_code == 400


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson", "text/csv", "*/*"])
@pytest.mark.parametrize("encoding", ["identity", "zstd", "gzip", "br"])
def test_texts_come_in_every_encoding(client: httpx.Client, accept: str, encoding: str):
    headers = {"Accept": accept, "Accept-Encoding": encoding}
    with client.stream("POST", "/v1/sql", json={"sql": "select 7 as a"}, headers=headers) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers.get("content-encoding", "identity") == encoding
    plain = (
        raw
        if encoding == "identity"
        else pa.input_stream(pa.BufferReader(raw), compression={"br": "brotli"}.get(encoding, encoding)).read()
    )
    expected = {"application/x-ndjson": b"[7]\n", "text/csv": b"a\r\n7\r\n"}.get(accept, b"[7]]")
    assert expected in plain


EXTREMES = "from test_all_types() select * exclude (small_enum, medium_enum, large_enum, bignum)"


def test_every_types_extremes_are_exact_in_every_format(client: httpx.Client, served: Served):
    rows = run(client, EXTREMES).json()
    by_name = {column["name"]: at for at, column in enumerate(rows["columns"])}
    least, most, nothing = rows["rows"]
    assert set(nothing) == {None}
    assert (least[by_name["bigint"]], most[by_name["bigint"]]) == (-(2**63), 2**63 - 1)
    assert (least[by_name["hugeint"]], most[by_name["uhugeint"]]) == (-(2**127), 2**128 - 1)
    assert most[by_name["ubigint"]] == 2**64 - 1
    assert most[by_name["dec38_10"]] == "9999999999999999999999999999.9999999999"
    assert most[by_name["timestamp"]] == "+294247-01-10T04:00:54.775806"
    assert least[by_name["date"]] == "-5877641-06-25"
    assert most[by_name["double_array"]] == [42, "NaN", "Infinity", "-Infinity", None, -42]
    assert most[by_name["date_array"]][1:3] == ["infinity", "-infinity"]
    assert most[by_name["time_tz"]] == "24:00:00-15:59:59"
    assert most[by_name["bit"]] == "10101"
    assert most[by_name["interval"]] == "P83Y3M999DT16M39.999999S"
    assert {"bigint", "hugeint", "uhugeint", "ubigint"} <= set(rows["beyond_2_53"])
    lines = run(client, EXTREMES, headers={"Accept": "application/x-ndjson"}).text.splitlines()
    assert [json.loads(line) for line in lines[1:4]] == rows["rows"]
    assert json.loads(lines[4])["end"]["row_count"] == 3
    with underlay.client.connect(served.url, served.tokens["reader"]) as connection:
        arrow = connection.sql(EXTREMES).to_arrow()
    assert arrow["ubigint"].to_pylist() == [0, 2**64 - 1, None]
    assert [int(value) for value in arrow["uhugeint"].to_pylist()[:2]] == [0, 2**128 - 1]
    file = run(client, EXTREMES, headers={"Accept": "application/vnd.apache.parquet"}).content
    table = pq.read_table(io.BytesIO(file))
    assert table["interval"].to_pylist() == ["PT0S", "P83Y3M999DT16M39.999999S", None]
    for name in ("bigint", "ubigint", "uhugeint", "dec38_10", "timestamp_tz", "blob", "nested_int_array", "map"):
        assert table[name].cast(arrow[name].type).equals(arrow[name]), name
    text = run(client, EXTREMES, headers={"Accept": "text/csv"}).content
    read = pyarrow.csv.read_csv(
        io.BytesIO(text),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in by_name},
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    assert read["ubigint"].to_pylist() == ["0", str(2**64 - 1), None]
    assert json.loads(read["double_array"].to_pylist()[1]) == most[by_name["double_array"]]


def test_null_and_empty_and_the_word_null_differ(client: httpx.Client):
    sql = "select * from (values (null, '', 'NULL', -0.0::double)) t(a, b, c, d)"
    assert run(client, sql).text.count('[null,"","NULL",-0.0]') == 1
    assert run(client, sql, headers={"Accept": "text/csv"}).text.splitlines()[1] == ',"",NULL,-0.0'


def test_a_cut_result_says_so(client: httpx.Client):
    found = run(client, "from shop.orders", row_limit=3).json()
    assert (len(found["rows"]), found["truncated"]) == (3, True)
    assert run(client, "from shop.orders limit 3", row_limit=3).json()["truncated"] is False


@pytest.mark.parametrize(
    ("sql", "status", "code", "position"),
    [
        ("selec 1", 400, "syntax_error", (1, 1, 0, 5)),
        ("select 'é🦆',\n  fair from shop.orders", 400, "unknown_column", (2, 3, 15, 4)),
        ("select fair from shop.orders version as of 1", 400, "unknown_column", (1, 8, 7, 4)),
        ("select 1 from shop.orders version as of 1 where x'00' = fair", 400, "unknown_column", (1, 57, 56, 4)),
        ("select 1; select 2", 400, "invalid_request", None),
        ("from shop.nothing", 404, "table_not_found", None),
        ("from shop.orders version as of 99", 404, "version_not_found", None),
        ("select cast(zone as int) from shop.orders", 422, "failed_on_data", None),
        ("insert into shop.orders values (1, 'a', 1)", 403, "forbidden", None),
    ],
)
def test_a_problem_has_its_status_code_and_place(
    client: httpx.Client, sql: str, status: int, code: str, position: tuple[int, ...] | None
):
    answer, *again = [run(client, sql) for _ in range(3)]  # plans may be kept
    found = answer.json()
    assert {one.text for one in again} == {answer.text}
    assert (answer.status_code, found["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    if position is not None:
        assert tuple(found["position"].values()) == position


def test_an_error_after_the_first_rows_is_seen_in_every_format(client: httpx.Client, served: Served):
    found = run(client, LATE).json()
    assert found["error"]["code"] == "failed_on_data"
    last = run(client, LATE, headers={"Accept": "application/x-ndjson"}).text.splitlines()[-1]
    assert json.loads(last)["error"]["status"] == 422
    for kind in ("text/csv", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"):
        with pytest.raises(httpx.RemoteProtocolError):
            run(client, LATE, headers={"Accept": kind})
    with underlay.client.connect(served.url, served.tokens["reader"]) as connection:
        late = connection.sql(LATE)
        with pytest.raises(Unavailable, match="ended before the rows did"):
            late.to_arrow()


def test_the_same_versions_give_304_and_a_commit_ends_that(served: Served):
    with served.client("writer") as client:
        link = {"query": "select count(*) c from shop.etags"}
        assert run(client, "create table shop.etags (a int)").status_code == 200
        first = client.get("/v1/sql", params=link)
        again = client.get("/v1/sql", params=link, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        run(client, "insert into shop.etags values (1)")
        after = client.get("/v1/sql", params=link, headers={"If-None-Match": first.headers["etag"]})
        assert (after.status_code, after.json()["rows"]) == (200, [[1]])
        assert client.get("/v1/sql", params={"query": "drop table shop.etags"}).status_code == 403
        assert "etag" not in client.get("/v1/sql", params={"query": "select random()"}).headers


def test_as_of_pins_every_table(served: Served):
    with served.client("writer") as client:
        run(client, "create table shop.pinned (a int)")
        first = client.get("/v1/tables/shop.pinned/versions").json()
        at = first["rows"][0][[one["name"] for one in first["columns"]].index("committed_at")]
        run(client, "insert into shop.pinned values (1)")
        assert run(client, "select count(*) from shop.pinned").json()["rows"] == [[1]]
        assert run(client, "select count(*) from shop.pinned", as_of=at).json()["rows"] == [[0]]
        assert run(client, "insert into shop.pinned values (2)", as_of=at).status_code == 403


def test_a_key_makes_a_change_once(served: Served):
    with served.client("writer") as client:
        run(client, "create table shop.once (a int)")
        sql, headers = "insert into shop.once values (1)", {"Idempotency-Key": "k1"}
        first, again = (run(client, sql, headers=headers) for _ in range(2))
        assert first.json()["rows"] == again.json()["rows"]
        assert run(client, "select count(*) from shop.once").json()["rows"] == [[1]]
        other = run(client, "insert into shop.once values (2)", headers=headers)
        assert (other.status_code, other.json()["code"]) == (422, "key_reused")
        forget_statements(served)
        assert run(client, sql, headers=headers).json()["rows"] == first.json()["rows"]
        assert run(client, "select count(*) from shop.once").json()["rows"] == [[1]]


def forget_statements(served: Served) -> None:
    """As a restart does."""
    served.service.known.clear()


ONCE = {
    "insert into shop.keyed select i, i from range(5) t(i)": [5, 0, 0, 5],
    "insert into shop.keyed values (100, 1) returning a": None,
    "update shop.keyed set b = b + 1 where a < 3": [3, 3, 0, 0],
    "update shop.keyed set b = b + 1 where a in (select max(a) from shop.keyed)": [1, 1, 0, 0],
    "update shop.keyed set b = b + 1 from (select 1 x) s where a = x": [1, 1, 0, 0],
    "merge into shop.keyed t using (select 2 x union all select 77) s on t.a = s.x "
    "when matched then update set b = b + 1 when not matched then insert (a, b) values (x, 0)": [2, 1, 0, 1],
    "delete from shop.keyed where a in (select min(a) from shop.keyed)": [1, 0, 1, 0],
    "delete from shop.keyed where b >= 0 and a >= 77": [2, 0, 2, 0],
    "truncate shop.keyed": [4, 0, 4, 0],
}


def test_a_key_makes_every_change_of_rows_once_even_after_a_restart(served: Served):
    with served.client("writer") as client:
        run(client, "create table shop.keyed (a int, b int)")
        for number, (sql, counts) in enumerate(ONCE.items()):
            headers = {"Idempotency-Key": f"every {number}"}
            first = run(client, sql, headers=headers)
            assert first.status_code == 200, first.text
            rows = run(client, "from shop.keyed order by all").json()["rows"]
            forget_statements(served)
            again = run(client, sql, headers=headers)
            assert run(client, "from shop.keyed order by all").json()["rows"] == rows, sql
            if counts is not None:
                assert first.json()["rows"][0][:4] == counts
                assert again.json()["rows"] == first.json()["rows"], sql


def test_a_kept_result_is_read_in_windows_sorted_and_downloaded(client: httpx.Client):
    found = client.post("/v1/statements", json={"sql": "from shop.orders", "limit": 2, "wait": 60}).json()
    assert (found["state"], found["row_count"], len(found["rows"])) == ("finished", 5000, 2)
    place = f"/v1/statements/{found['id']}"
    window = client.get(f"{place}/rows", params={"offset": 4998, "limit": 10}).json()
    assert [row[0] for row in window["rows"]] == [4998, 4999]
    ordered = client.get(f"{place}/rows", params={"order_by": "price", "descending": True, "limit": 1}).json()
    assert ordered["rows"] == [[4999, "zone 1", "1249.75"]]
    assert client.get(f"{place}/rows", params={"order_by": "nothing"}).json()["code"] == "unknown_column"
    for descending in (False, True):
        windows = [
            client.get(f"{place}/rows", params={**by_zone, "offset": at, "limit": 700}).json()["rows"]
            for by_zone in [{"order_by": "zone", "descending": descending}]
            for at in range(0, 5000, 700)
        ]
        rows = [row for window in windows for row in window]
        assert sorted(row[0] for row in rows) == list(range(5000)), "each row once, although many have the same zone"
        assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=descending)
    file = client.get(f"{place}/result", params={"format": "parquet"}).content
    assert pq.read_table(io.BytesIO(file)).num_rows == 5000
    assert client.delete(place).status_code == 204
    assert client.get(place).status_code == 404


def test_a_statement_is_stopped_by_delete_by_its_timeout_and_by_leaving(client: httpx.Client, served: Served):
    begun = client.post("/v1/statements", json={"sql": ENDLESS, "wait": 0})
    assert begun.status_code == 202
    assert client.delete(begun.headers["location"]).status_code == 204
    found = run(client, ENDLESS, timeout=0.2)
    assert (found.status_code, found.json()["code"]) == (422, "statement_timeout")
    with client.stream("POST", "/v1/sql", json={"sql": "from range(10000000000)"}) as answer:
        next(answer.iter_raw())
    wait_until(lambda: served.service.turns.running == 0)
    with pytest.raises(httpx.ReadTimeout), served.client() as short:
        short.post("/v1/sql", json={"sql": ENDLESS}, timeout=0.3)
    wait_until(lambda: served.service.turns.running == 0)
    assert run(client, "select 1").json()["rows"] == [[1]]


def test_a_worker_that_dies_costs_its_own_statement(client: httpx.Client, served: Served):
    begun = client.post("/v1/statements", json={"sql": ENDLESS, "wait": 0, "timeout": 600}).json()
    statement = served.service.known[begun["id"]]
    wait_until(lambda: statement.worker is not None)
    other = client.post("/v1/statements", json={"sql": "select 1", "wait": 60}).json()
    statement.worker._process.kill()
    ended = client.get(f"/v1/statements/{begun['id']}", params={"wait": 60}).json()
    assert (ended["state"], ended["error"]["code"]) == ("failed", "engine_failed")
    assert other["state"] == "finished"
    wait_until(lambda: served.service.workers.alive == 2)


def test_one_huge_value_is_refused_and_the_server_lives(client: httpx.Client):
    found = run(client, "select repeat('x', 3000000000)")
    assert (found.status_code, found.json()["code"]) == (422, "memory_limit")
    assert run(client, "select 1").status_code == 200


def test_the_server_says_how_it_is(client: httpx.Client, served: Served):
    assert client.get("/healthz").json() == {"status": "alive"}
    assert client.get("/readyz").json()["status"] == "ready"
    assert client.get("/v1/info").json()["limits"]["running"] == 2
    assert "underlay_statements_total" in client.get("/metrics").text
    lines = [json.loads(line) for line in (served.folder / "audit.ndjson").read_text().splitlines()]
    assert {"shop.orders": 1} in [line["tables"] for line in lines]
    assert all(served.tokens["reader"] not in json.dumps(line) for line in lines)


def test_the_client_gives_frames_tuples_and_the_errors_of_the_lake(served: Served):
    with underlay.client.connect(served.url, served.tokens["reader"]) as connection:
        sql = "select id, price from shop.orders where id < $most order by id"
        expected = served.lake.sql(sql, {"most": 3}).to_arrow()
        assert connection.sql(sql, {"most": 3}).to_arrow().equals(expected)
        assert connection.sql(sql, {"most": 3}).to_pandas()["id"].tolist() == [0, 1, 2]
        assert connection.sql(sql, {"most": 3}).to_polars()["id"].to_list() == [0, 1, 2]
        cursor = connection.cursor()
        cursor.execute("select id from shop.orders where id < ? order by id", [5])
        assert (cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall()) == ((0,), [(1,), (2,)], [(3,), (4,)])
        assert [one[0] for one in cursor.description] == ["id"]
        connection.sql("from range(100000000)")  # not read: the next one takes its place
        for text, kind in {
            "select fair from shop.orders": UnknownColumn,
            "from secret.pay": TableNotFound,
            "delete from shop.orders": Forbidden,
            "selec": InvalidRequest,
        }.items():
            with pytest.raises(kind):
                connection.sql(text)
        assert connection.info()["caller"]["name"] == "reader"


def test_no_request_that_the_description_allows_makes_a_fault(served: Served):
    """Schemathesis over the whole description: no 5xx, whatever is sent."""
    schema = schemathesis.openapi.from_dict(httpx.get(f"{served.url}/openapi.json").json())
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 10
    with served.client("reader") as client:
        for operation in operations:
            assert faults(operation.as_strategy(), client) == []


def faults(cases: SearchStrategy[schemathesis.Case], client: httpx.Client) -> list[str]:
    """What the server fails on, of requests that are made up."""
    found = []

    @settings(
        max_examples=sized(4, 100),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=cases)
    def ask(case: schemathesis.Case) -> None:
        sent = case.as_transport_kwargs(base_url=served_url(client))
        answer = requests.request(**sent | {"headers": {**sent["headers"], **client.headers}}, timeout=PATIENCE)
        if answer.status_code >= 500:
            found.append(f"{case.method} {case.formatted_path}: {answer.text}")

    ask()
    return found


def served_url(client: httpx.Client) -> str:
    return str(client.base_url).rstrip("/")

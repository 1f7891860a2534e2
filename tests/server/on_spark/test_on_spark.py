"""A server whose statements run on Spark: the same answers, problems and rights as on DuckDB."""

from __future__ import annotations

import httpx

from tests.server.conftest import Served, run
from tests.server.on_spark.conftest import ended
from tests.server.on_spark.values import KINDS, ROWS, SAME, UNLIKE


def test_statements_run_on_spark_when_they_ask_for_it(client: httpx.Client, served: Served):
    """The one test of the gate that starts the Spark of a server."""
    assert served.service.spark.pid is None  # nothing asked for it yet
    text = "select zone, count(*) n, sum(price) total from shop.orders group by zone order by zone"
    answer = ended(client, {"sql": text, "engine": "spark"})
    assert (answer["engine"], answer["engine_reason"]) == ("spark", "asked for")
    assert answer["tables"] == [{"name": "shop.orders", "version": 1}]
    assert (answer["row_count"], answer["stats"]["blocks_read"], answer["plans"][0]["columns"]) == (
        7,
        1,
        ["zone", "price"],
    )
    kept = client.get(f"/v1/statements/{answer['id']}/rows?order_by=n").json()["rows"]
    rows = run(client, text, engine="spark").json()["rows"]
    assert sorted(kept) == rows == run(client, text, engine="duckdb").json()["rows"]
    blocks = client.get(f"/v1/statements/{answer['id']}/blocks").json()
    assert blocks["block_count"] == 1

    for text in (KINDS, ROWS):
        served.lake.sql(text)
    stored = "select * from shop.kinds order by id"
    on_spark, on_duckdb = (run(client, stored, engine=engine).json() for engine in ("spark", "duckdb"))
    assert (on_spark["columns"], on_spark["rows"]) == (on_duckdb["columns"], on_duckdb["rows"])
    for text in SAME:
        chosen, reason, columns, found = _kept(client, text, "auto")
        assert (chosen, columns, found) == ("spark", *_kept(client, text, "duckdb")[2:]), (text, reason)
        assert reason.startswith("its plan reads ")
    for text in UNLIKE:
        chosen, reason, columns, found = _kept(client, text, "auto")
        assert (chosen, columns, found) == ("duckdb", *_kept(client, text, "duckdb")[2:]), (text, reason)

    unseen, absent = (run(client, f"select * from secret.{name}", engine="spark") for name in ("pay", "pax"))
    assert unseen.status_code == 404
    assert unseen.json() == {**absent.json(), "detail": absent.json()["detail"].replace("pax", "pay")}
    wrong = run(client, "select id,\n pricee from shop.orders", engine="spark").json()
    assert (wrong["code"], wrong["position"]["line"], wrong["position"]["length"]) == ("unknown_column", 2, 6)
    assert run(client, "select 1 div 0", engine="spark").json()["code"] == "failed_on_data"
    assert run(client, "select reflect('a', 'b')", engine="spark").status_code == 400
    values = {"a": 1, "b": {"value": "12.50", "type": "decimal(9,2)"}}
    assert run(client, "select :a, :b", engine="spark", parameters=values).json()["rows"] == [[1, "12.50"]]
    limited = run(client, "select id from range(100000)", engine="spark", row_limit=3).json()
    assert (limited["rows"], limited["truncated"]) == ([[0], [1], [2]], True)
    with served.client("writer") as writer:
        changed = writer.post("/v1/statements", json={"sql": "delete from shop.orders where id = 1", "engine": "spark"})
    assert (changed.json()["engine"], changed.json()["engine_reason"]) == ("duckdb", "changes do not run on Spark")
    assert run(client, "select count(*) from shop.orders", engine="spark").json()["rows"] == [[4999]]


def _kept(client: httpx.Client, text: str, engine: str) -> tuple[str, str, list[object], list[object]]:
    """The engine that ran it, why, the columns, and the rows."""
    found = ended(client, {"sql": text, "engine": engine})
    rows = client.get(f"/v1/statements/{found['id']}/rows").json()["rows"]
    return found["engine"], found["engine_reason"], found["columns"], rows

"""What the server tells of tables and plans, and that it tells nothing of tables that a token may not see."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator

import httpx
import pyarrow as pa
import pytest

import underlay as ul
from tests.server.conftest import Served

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
VIEWS = ("blocks", "columns", "versions", "files", "sources", "diff", "health", "jobs", "runs")
WHERE = "id between 250 and 260"


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    table = served.lake.create_table(
        "shop.blocks", "id bigint, zone string, price decimal(9,2)", sort_by=["id"], properties={"block_rows": "100"}
    )
    for first in (0, 1000):
        rows = {"id": range(first, first + 1000), "zone": [f"z{at % 7}" for at in range(1000)]}
        table.append(pa.table({**rows, "price": pa.nulls(1000, pa.decimal128(9, 2))}))
    with served.client() as one:
        yield one


def table_of(served: Served) -> ul.Table:
    return served.lake.table("shop.blocks")


def rows_of(answer: httpx.Response) -> list[dict[str, object]]:
    assert answer.status_code == 200, answer.text
    found = answer.json()
    names = [column["name"] for column in found["columns"]]
    return [dict(zip(names, row, strict=True)) for row in found["rows"]]


def test_a_plan_of_sql_has_the_steps_of_each_scan(client: httpx.Client, served: Served):
    text = f"select count(zone) from shop.blocks where {WHERE}"
    found = client.post("/v1/plan", json={"sql": text}).json()
    (plan,) = found["plans"]
    expected = table_of(served).plan(["zone"], WHERE).to_dict()
    assert (plan["table"], plan["version"], plan["total"]) == ("shop.blocks", 2, expected["table"])
    assert plan["kept"]["blocks"] == expected["kept"]["blocks"] == 1
    assert sum(step["blocks"] for step in plan["steps"]) == 19
    assert found["tables"] == [{"name": "shop.blocks", "version": 2}]
    assert found["stats"]["blocks_read"] == 1
    assert 0 < found["stats"]["bytes_read"] < expected["table"]["data_bytes"]
    joined = client.post("/v1/plan", json={"sql": "from shop.blocks a join shop.blocks b using (id)"}).json()
    assert [one["scan"] for one in joined["plans"]] == [0, 1]
    assert joined["warnings"]


def test_a_plan_of_a_table_is_that_of_the_library(client: httpx.Client, served: Served):
    asked = {"table": "shop.blocks", "where": WHERE, "columns": ["zone"], "version": 1}
    (plan,) = client.post("/v1/plan", json=asked).json()["plans"]
    expected = json.loads(json.dumps(table_of(served).at(version=1).plan(["zone"], WHERE).to_dict()))
    assert (plan["steps"], plan["kept"], plan["total"]) == (expected["steps"], expected["kept"], expected["table"])


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"sql": "delete from shop.blocks"}, 400),
        ({"sql": "from secret.pay"}, 404),
        ({"table": "secret.pay"}, 404),
        ({"table": "shop.blocks", "where": "read_text('/etc/passwd') = 'x'"}, 400),
        ({"table": "shop.blocks", "where": "nothing > 1"}, 400),
        ({"table": "shop.blocks", "where": "id in (select salary from secret.pay)"}, 404),
        ({"table": "shop.blocks", "sql": "select 1"}, 400),
        ({"sql": "select 1", "scan": 0}, 400),
        ({"table": "shop.blocks", "version": 99}, 404),
        ({"table": "shop.blocks", "version": 1, "as_of": "2001-01-01"}, 400),
        ({}, 400),
        ({"table": 1}, 400),
    ],
)
def test_a_plan_of_nothing_that_may_be_read_is_refused(client: httpx.Client, asked: dict[str, object], status: int):
    answer = client.post("/v1/plan", json=asked)
    assert answer.status_code == status, answer.text
    assert "4711" not in answer.text


def test_the_block_map_has_every_block_and_what_becomes_of_it(client: httpx.Client, served: Served):
    found = client.get("/v1/tables/shop.blocks/blocks", params={"where": WHERE})
    blocks, facts = rows_of(found), found.json()
    assert (len(blocks), facts["block_count"], facts["column"]) == (20, 20, "id")
    verdicts = [facts["verdicts"][int(str(one["verdict"]))] for one in blocks]
    assert Counter(verdicts) == {"file": 10, "block": 9, "read": 1}
    assert [one["min"] for one in blocks] == list(range(0, 2000, 100))
    assert {facts["steps"][int(str(one["step"]))]["level"] for one in blocks if one["step"] is not None} == {
        "file",
        "block",
    }
    params = {"where": WHERE, "order": "min", "column": "price"}
    arrow = pa.ipc.open_stream(
        io.BytesIO(client.get("/v1/tables/shop.blocks/blocks", params=params, headers=ARROW).content)
    )
    table = arrow.read_all()
    assert table["verdict"].to_pylist().count(0) == 1
    assert table.schema.field("min").type == pa.decimal128(9, 2)
    assert json.loads(table.schema.metadata[b"underlay"])["steps"] == facts["steps"]
    part = client.get("/v1/tables/shop.blocks/blocks", params={"where": WHERE, "offset": 2, "limit": 3})
    assert rows_of(part) == blocks[2:5]
    (first, *_) = bins = rows_of(client.get("/v1/tables/shop.blocks/blocks", params={"where": WHERE, "bins": 4}))
    assert (len(bins), first["blocks"], first["read"], first["block"]) == (4, 5, 1, 4)
    assert client.get("/v1/tables/shop.blocks/blocks", params={"where": "id = getenv('HOME')"}).status_code == 400


def test_the_same_version_gives_304_for_a_map(client: httpx.Client):
    first = client.get("/v1/tables/shop.blocks/blocks")
    known = {"If-None-Match": first.headers["ETag"]}
    assert client.get("/v1/tables/shop.blocks/blocks", headers=known).status_code == 304
    assert client.get("/v1/tables/shop.blocks/blocks", params={"version": 1}, headers=known).status_code == 200


def test_a_statement_tells_its_plans_and_the_map_of_each_scan(client: httpx.Client):
    sql = f"select count(*) c from shop.blocks a join shop.orders b using (id) where a.{WHERE}"
    found = client.post("/v1/statements", json={"sql": sql}).json()
    assert found["rows"] == [[11]]
    tables = [plan["table"] for plan in found["plans"]]
    assert sorted(tables) == ["shop.blocks", "shop.orders"]
    assert found["stats"]["blocks_read"] == sum(plan["kept"]["blocks"] for plan in found["plans"])
    path = f"/v1/statements/{found['id']}/blocks"
    mapped = rows_of(client.get(path, params={"scan": tables.index("shop.blocks")}))
    assert Counter(one["verdict"] for one in mapped) == {4: 10, 5: 9, 0: 1}
    assert client.get(path, params={"scan": 2}).status_code == 404
    assert client.get(f"/v1/statements/{found['id']}").json()["plans"] == found["plans"]


def test_a_link_downloads_once_and_needs_no_token(client: httpx.Client, served: Served):
    found = client.post("/v1/statements", json={"sql": "select id from shop.blocks order by id limit 3"}).json()
    made = client.post(f"/v1/statements/{found['id']}/links", params={"format": "csv"})
    assert made.status_code == 201
    with served.client(None) as stranger:
        answer = stranger.get(made.json()["url"])
        assert (answer.status_code, answer.text.split()) == (200, ["id", "0", "1", "2"])
        assert "attachment" in answer.headers["content-disposition"]
        assert stranger.get(made.json()["url"]).status_code == 404
    with served.client("writer") as other:
        assert other.post(f"/v1/statements/{found['id']}/links").status_code == 404


def test_the_catalog_tells_columns_versions_files_and_differences(client: httpx.Client):
    assert client.get("/v1/datasets").json()["datasets"][0]["name"] == "shop"
    table = client.get("/v1/tables/shop.blocks").json()
    assert (table["row_count"], table["file_count"], table["sort_by"], table["version"]) == (2000, 2, ["id"], 2)
    id, zone, price = rows_of(client.get("/v1/tables/shop.blocks/columns"))
    assert (id["min"], id["max"], id["null_count"]) == ("0", "1999", 0)
    assert (id["low"], id["high"]) == ("0", "1999")
    assert (zone["min"], zone["max"], price["null_count"]) == ("z0", "z6", 2000)
    assert [one["version"] for one in rows_of(client.get("/v1/tables/shop.blocks/versions"))] == [2, 1, 0]
    assert len(rows_of(client.get("/v1/tables/shop.blocks/versions", params={"most": 1}))) == 1
    assert len(rows_of(client.get("/v1/tables/shop.blocks/files", params={"version": 1}))) == 1
    assert [one["change"] for one in rows_of(client.get("/v1/tables/shop.blocks/diff"))] == ["added"]
    changed = client.get("/v1/tables/shop.blocks/diff", params={"since": 0, "version": 2}).json()
    assert (changed["rows_added"], len(changed["rows"])) == (2000, 2)
    assert client.get("/v1/tables/shop.blocks/health").json()["row_count"] == 2000
    for view in ("sources", "jobs", "runs"):
        assert rows_of(client.get(f"/v1/tables/shop.blocks/{view}")) == []
    assert client.get("/v1/tables/shop.blocks/nothing").status_code == 404
    assert rows_of(client.get("/v1/runs")) == rows_of(client.get("/v1/jobs")) == []


@pytest.mark.parametrize(
    "path",
    [
        "",
        *(
            f"/{view}"
            for view in ["blocks", "columns", "versions", "files", "sources", "diff", "health", "jobs", "runs"]
        ),
    ],
)
def test_a_table_that_may_not_be_seen_is_as_absent_as_one_that_is_not(client: httpx.Client, path: str):
    unseen, absent = (client.get(f"/v1/tables/{name}{path}") for name in ("secret.pay", "secret.nothing"))
    assert (unseen.status_code, absent.status_code) == (404, 404)
    assert unseen.text.replace("pay", "nothing") == absent.text


def test_completion_has_words_and_columns_of_what_may_be_read(client: httpx.Client):
    words = client.get("/v1/completion").json()
    names = {one["name"] for one in words["functions"]}
    assert {"abs", "list_transform"} <= names
    assert not {"read_csv", "getenv", "sleep_ms"} & names
    assert "select" in words["keywords"]
    assert "shop.blocks" in words["tables"]
    assert "secret.pay" not in words["tables"]
    found = client.get("/v1/completion", params={"tables": "shop.blocks,secret.pay,shop.no"}).json()["columns"]
    assert {name: [one["name"] for one in columns] for name, columns in found.items()} == {
        "shop.blocks": ["id", "zone", "price"]
    }


def test_the_audit_log_is_a_view_for_admins_and_of_own_statements_for_others(client: httpx.Client, served: Served):
    client.post("/v1/sql", json={"sql": "select 1234 mine", "tags": {"app": "test"}})
    text = "select sql, state, rows, tags from underlay.statements where sql like '%1234 mine' order by time"
    own = client.post("/v1/sql", json={"sql": text}).json()["rows"]
    assert own[0] == ["select 1234 mine", "finished", 1, [["app", "test"]]]
    with served.client("admin") as admin, served.client("writer") as writer:
        assert admin.post("/v1/sql", json={"sql": text}).json()["rows"][0] == own[0]
        assert writer.post("/v1/sql", json={"sql": text}).json()["rows"] == []


def test_a_statement_that_runs_says_how_far_it_is(client: httpx.Client):
    sql = "select count(*) from shop.blocks a, range(1000000000) b, range(1000) c"
    begun = client.post("/v1/statements", json={"sql": sql, "wait": 0}).json()
    path = f"/v1/statements/{begun['id']}"
    while "blocks_read" not in (progress := client.get(path).json()["progress"]) or progress["blocks_read"] < 20:
        pass
    assert (progress["blocks"], progress["rows"]) == (20, 0)
    assert client.delete(path).status_code == 204

"""Whose requests the server answers, and which bodies it takes."""

from __future__ import annotations

import httpx
import pytest

from tests.server.conftest import Served, run


def test_statements_are_their_tokens_own(served: Served):
    with served.client("reader") as mine, served.client("writer") as other, served.client("admin") as admin:
        found = mine.post("/v1/statements", json={"sql": "select 1", "wait": 60}).json()
        place = f"/v1/statements/{found['id']}"
        assert [one.get(place).status_code for one in (mine, other, admin)] == [200, 404, 200]
        assert found["id"] not in other.get("/v1/statements").text
        for rows in (f"{place}/rows", f"{place}/result"):
            assert [one.get(rows).status_code for one in (mine, other, admin)] == [200, 404, 403]


def test_who_has_no_token_or_right_sees_nothing(client: httpx.Client, served: Served):
    assert httpx.get(f"{served.url}/v1/tables").status_code == 401
    wrong = httpx.get(f"{served.url}/v1/tables", headers={"Authorization": "Bearer ul_x_y"})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "invalid_token")
    assert "secret" not in client.get("/v1/tables").text
    unseen, absent = (client.get(f"/v1/tables/{name}").json() for name in ("secret.pay", "secret.nay"))
    assert {**unseen, "detail": ""} == {**absent, "detail": ""}
    for view in ("tables", "versions", "files", "blocks", "sources", "jobs"):
        assert "secret" not in run(client, f"from underlay.{view}").text
    assert "secret" not in run(client, "show tables").text


def test_a_writer_changes_its_tables_only(served: Served):
    with served.client("writer") as client:
        assert run(client, "create table new.table (a int)").status_code == 200
        assert run(client, "insert into new.table values (1), (2)").json()["rows"][0][3] == 2
        assert run(client, "update new.table set a = 3 where a = 2").status_code == 200
        assert run(client, "delete from new.table where a = 1").status_code == 200
        assert run(client, "select a from new.table").json()["rows"] == [[3]]
        assert run(client, "alter table new.table rename to new.other").json()["code"] == "forbidden"
        assert run(client, "create table other.table (a int)").json()["code"] == "forbidden"
        assert run(client, "delete from secret.pay").json()["code"] == "table_not_found"
        assert run(client, "insert into shop.orders select id, salary, 1 from secret.pay").status_code == 404
        assert run(client, "drop table new.table").status_code == 200


def test_a_revoked_token_is_refused_at_once(served: Served):
    from underlay.server.access.tokens import TokenFile

    with served.client("reader") as client:
        assert client.get("/v1/info").json()["caller"]["read"] == ["shop"]
    file = TokenFile(served.folder / "tokens.json")
    made = file.revoke("admin")
    with served.client("admin") as client:
        assert client.get("/v1/info").status_code == 401
    _, served.tokens["admin"] = file.create("admin", made.rights, made.created)
    assert served.tokens["reader"].rpartition("_")[2] not in (served.folder / "tokens.json").read_text()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1@evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_requests_of_other_sites_are_refused(client: httpx.Client, headers: dict[str, str], status: int):
    answer = client.get("/v1/info", headers=headers)
    assert answer.status_code == status
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_bodies_that_are_too_large_or_of_another_type_are_refused(client: httpx.Client):
    sent = {"Content-Type": "application/sql"}
    assert client.post("/v1/sql", content=b"select 1 --" + b"x" * 300_000, headers=sent).status_code == 413
    assert client.post("/v1/sql", content=b"x" * (17 << 20), headers=sent).status_code == 413
    assert client.post("/v1/sql", content=b"\xff", headers=sent).status_code == 400
    assert client.post("/v1/sql", content=b"<a/>", headers={"Content-Type": "text/xml"}).status_code == 415
    zipped = {"Content-Encoding": "gzip", **sent}
    assert client.post("/v1/sql", content=b"x", headers=zipped).status_code == 415
    plain = {"Content-Type": "text/plain"}
    assert client.post("/v1/sql", content=b"select 1", headers=plain).status_code == 200
    own = {**plain, "Origin": str(client.base_url).rstrip("/")}
    assert client.post("/v1/sql", content=b"select 1", headers=own).status_code == 415
    assert run(client, "select 1", headers={"Accept": "image/png"}).status_code == 406
    assert client.post("/v1/sql", content=b'{"sql": "select 1", "timeout": NaN}').status_code == 400

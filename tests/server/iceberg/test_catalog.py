"""The service as Iceberg's REST catalog, asked by pyiceberg, DuckDB and Polars."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError, RESTError

from tests.interop import everything
from tests.interop.engines import connect, in_memory, plain
from tests.server.conftest import Served, running

READER = "reader"
TABLE = "/iceberg/v1/namespaces/taxi/tables/trips"


def fill(folder: Path) -> None:
    import underlay as ul

    with ul.connect(str(folder), registry="none") as lake:
        everything.make(lake, folder.parent / "in")
        lake.create_table("shop.orders", "id bigint, zone string")
        lake.create_table("shop.sizes", "id bigint, size uint8")
        lake.create_table("secret.pay", "id bigint")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(tmp_path_factory.mktemp("rest"), fill=fill) as found:
        yield found


def catalog_of(served: Served, token: str) -> RestCatalog:
    return RestCatalog("underlay", uri=f"{served.url}/iceberg", token=served.tokens[token])


def test_pyiceberg_reads_by_name_what_underlay_reads(served: Served):
    table = catalog_of(served, "admin").load_table(("taxi", "trips"))
    rows = table.scan().to_arrow()
    for query in everything.QUESTIONS:
        assert str(plain(in_memory(rows, query))) == str(plain(everything.expected(served.lake, query))), query


def test_polars_reads_by_name(served: Served):
    table = catalog_of(served, "admin").load_table(("taxi", "trips"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pl.scan_iceberg(table).filter(pl.col("area") == "JFK").select(pl.len()).collect().item()
    assert [(found,)] == everything.expected(served.lake, "select count(*) from t where area = 'JFK'")


def test_duckdb_attaches_the_service(served: Served):
    con = connect("httpfs", "avro", "iceberg")
    con.execute(
        f"attach 'underlay' as lake (type iceberg, endpoint '{served.url}/iceberg', token '{served.tokens['admin']}')"
    )
    for query in everything.QUESTIONS:
        found = con.execute(query.replace("from t", "from lake.taxi.trips t")).fetchall()
        assert str(plain(found)) == str(plain(everything.expected(served.lake, query))), query
    with pytest.raises(duckdb.Error):
        con.execute("insert into lake.shop.orders values (1, 'x')")


def test_a_version_that_was_just_committed_is_loaded(served: Served):
    catalog, table = catalog_of(served, READER), served.lake.table("shop.orders")
    for number in range(3):
        table.append([{"id": number, "zone": "JFK"}])
        assert catalog.load_table(("shop", "orders")).scan().to_arrow().num_rows == number + 1


def test_a_table_that_is_current_is_not_exported_again(served: Served):
    with served.client("admin") as client:
        first, again = client.get(TABLE).json(), client.get(TABLE).json()
    assert first == again
    assert set(first) == {"metadata-location", "metadata", "config"}


def test_what_a_token_may_not_read_is_not_there(served: Served):
    catalog = catalog_of(served, READER)
    assert catalog.list_namespaces() == [("shop",)]
    assert catalog.list_tables("shop") == [("shop", "orders"), ("shop", "sizes")]
    assert catalog.namespace_exists("shop")
    assert not catalog.namespace_exists("secret")
    assert catalog.table_exists(("shop", "orders"))
    assert not catalog.table_exists(("secret", "pay"))
    with pytest.raises(NoSuchTableError):
        catalog.load_table(("secret", "pay"))


@pytest.mark.parametrize(
    ("token", "method", "path", "status", "kind"),
    [
        (None, "GET", "/iceberg/v1/config", 401, "NotAuthorizedException"),
        (READER, "GET", "/iceberg/v1/namespaces/none", 404, "NoSuchNamespaceException"),
        (READER, "GET", "/iceberg/v1/namespaces/secret/tables", 404, "NoSuchNamespaceException"),
        (READER, "GET", "/iceberg/v1/namespaces/shop/tables/none", 404, "NoSuchTableException"),
        (READER, "GET", "/iceberg/v1/namespaces/secret/tables/pay", 404, "NoSuchTableException"),
        (READER, "GET", "/iceberg/v1/namespaces/shop/views", 404, "NotFoundException"),
        (READER, "POST", "/iceberg/v1/namespaces", 403, "ForbiddenException"),
        ("admin", "DELETE", "/iceberg/v1/namespaces/shop/tables/orders", 403, "ForbiddenException"),
        (READER, "GET", "/iceberg/v1/namespaces/shop/tables/sizes", 400, "NotExportableException"),
    ],
)
def test_errors_are_those_of_the_specification(
    served: Served, token: str | None, method: str, path: str, status: int, kind: str
):
    with served.client(token) as client:
        found = client.request(method, path)
    error = found.json()["error"]
    assert (found.status_code, error["code"], error["type"]) == (status, status, kind)
    assert error["message"]


def test_clients_cannot_change_tables(served: Served):
    catalog = catalog_of(served, "admin")
    table = catalog.load_table(("shop", "orders"))
    before = len(served.lake.table("shop.orders"))
    with pytest.raises((RESTError, NotImplementedError, ValueError, OSError)):
        table.append(table.scan().to_arrow())
    with pytest.raises((RESTError, NotImplementedError, ValueError)):
        catalog.drop_table(("shop", "orders"))
    assert len(served.lake.table("shop.orders")) == before


def test_columns_that_were_left_out_stay_out_when_the_table_changes(served: Served):
    table = served.lake.table("shop.sizes")
    table.export(without=["size"])
    table.append([{"id": 1, "size": 2}])
    found = catalog_of(served, READER).load_table(("shop", "sizes"))
    assert found.scan().to_arrow().to_pylist() == [{"id": 1}]
    table.export(without=["size"])

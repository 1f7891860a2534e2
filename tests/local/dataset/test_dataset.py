from __future__ import annotations

import pickle

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import underlay
from tests.local.lakes import SmallLake
from underlay.errors import BadPredicate, Damaged, InvalidRequest, NotFound, UnknownColumn, Unsupported
from underlay.local.dataset.source import EngineDataset

NAN = float("nan")
ROWS = pa.table(
    {
        "i": [1, 2, 3, 4, 5, 6, None],
        "f": [1.0, NAN, None, -0.0, 5.0, NAN, 2.0],
        "s": [{"x": 1}, {"x": 2}, None, {"x": None}, {"x": 5}, {"x": 6}, {"x": 7}],
        "n": pa.array([0, 1, 2, 3, 4, 5, None], pa.timestamp("ns")),
    }
)
INT, FLOAT = pc.field("i"), pc.field("f")
NANO = pa.scalar(1, pa.timestamp("ns"))


@pytest.fixture
def lake(tmp_path):
    return SmallLake(tmp_path, {"a.b": ROWS})


@pytest.fixture
def dataset(lake):
    return lake.dataset("a.b")


def data_files(lake):
    return [file for file in lake.store.list_objects("a") if file.key.endswith(".parquet")]


def test_all_rows_come_in_order(dataset):
    assert dataset.to_table().column("i").to_pylist() == ROWS.column("i").to_pylist()
    assert dataset.to_table().schema == dataset.schema
    assert dataset.schema.names == ROWS.schema.names


def test_columns_come_in_the_order_asked_for(dataset):
    assert dataset.to_table(columns=["f", "i"]).schema.names == ["f", "i"]


def test_expressions_are_projected_by_arrow(dataset):
    found = dataset.to_table(columns={"twice": INT * 2, "x": pc.field("s", "x")}, filter=INT > 4)
    assert found.to_pydict() == {"twice": [10, 12], "x": [5, 6]}


def test_a_constant_needs_no_column_and_still_has_all_rows(dataset):
    assert dataset.to_table(columns={"one": pc.scalar(1)}).to_pydict() == {"one": [1] * 7}


def test_a_field_of_a_struct_is_a_column(dataset):
    assert dataset.to_table(columns=["s.x"]).column("s.x").to_pylist() == [1, 2, None, None, 5, 6, 7]


def test_no_columns_are_rows_without_columns(dataset):
    assert dataset.to_table(columns=[], filter=INT > 4).num_rows == 2
    assert dataset.to_table(columns=[]).num_rows == 7
    assert dataset.head(3, columns=[]).num_rows == 3


def test_an_unknown_column_is_refused(dataset):
    with pytest.raises(UnknownColumn, match="nope"):
        dataset.scanner(columns=["nope"])


def test_columns_as_one_text_are_refused(dataset):
    with pytest.raises(InvalidRequest, match="list of names"):
        dataset.scanner(columns="i")


def test_a_filter_on_a_column_that_is_not_asked_for(dataset):
    assert dataset.to_table(columns=["i"], filter=pc.field("s", "x") > 5).to_pydict() == {"i": [6, None]}


def test_a_filter_that_only_arrow_can_apply_reads_its_columns_and_drops_them(dataset):
    assert dataset.to_table(columns=["i"], filter=pc.field("n") > NANO).to_pydict() == {"i": [3, 4, 5, 6]}


def test_nan_is_greatest_beside_a_filter_that_only_arrow_can_apply(dataset):
    assert dataset.to_table(columns=["i"], filter=(FLOAT > 2) & (pc.field("n") > NANO)).to_pydict() == {"i": [5, 6]}


@pytest.mark.parametrize("columns", [["f"], ["n", "s", "f", "i"]])
def test_a_filter_by_the_number_of_a_column(dataset, columns):
    found = dataset.to_table(columns=columns, filter=pc.field(0) == 5)
    assert (found.schema.names, found.column("f").to_pylist()) == (columns, [5.0])


@pytest.mark.parametrize("number", range(4))
def test_a_scan_by_the_number_of_a_column(number):
    table = underlay.connect(f"memory://by-number-{number}").create_table("a.b", "a int, b int, c int, d int")
    table.append(pa.table({name: pa.array([at, 9], pa.int32()) for at, name in enumerate("abcd")}))
    assert table.scan(["d"], where=pc.field(number) == number).to_arrow().to_pydict() == {"d": [3]}


def test_a_filter_that_is_neither_true_nor_false_is_refused(dataset):
    with pytest.raises(BadPredicate, match="Arrow cannot apply the condition"):
        dataset.to_table(filter=INT.cast(pa.string()))


def test_a_filtered_dataset_filters_every_scan(dataset):
    some = dataset.filter(INT > 2).filter(INT < 6)
    assert some.to_table(columns=["i"], filter=INT != 4).to_pydict() == {"i": [3, 5]}
    assert some.count_rows() == 3


def test_head_is_the_first_rows(dataset):
    assert dataset.head(3, columns=["i"]).to_pydict() == {"i": [1, 2, 3]}
    assert dataset.head(0).num_rows == 0


def test_take_is_by_position(dataset):
    assert dataset.take([4, 0], columns=["i"]).to_pydict() == {"i": [5, 1]}


def test_batches_are_no_larger_than_asked_for(dataset):
    assert max(batch.num_rows for batch in dataset.to_batches(batch_size=2)) <= 2
    assert sum(batch.num_rows for batch in dataset.to_batches(batch_size=2)) == 7


@pytest.mark.parametrize("filter_", [None, INT > 2, FLOAT > 2, INT.is_null(), pc.field("n") > NANO])
def test_a_count_is_that_of_the_rows(dataset, filter_):
    assert dataset.count_rows(filter=filter_) == dataset.to_table(filter=filter_).num_rows


def test_a_count_without_filter_reads_no_file(lake, dataset):
    lake.store.delete(file.key for file in data_files(lake))
    assert dataset.count_rows() == 7


def test_a_scanner_knows_its_columns_and_can_run_twice(dataset):
    scanner = dataset.scanner(columns={"twice": INT * 2}, filter=INT > 5)
    assert scanner.projected_schema == pa.schema([("twice", pa.int64())])
    assert scanner.dataset_schema == dataset.schema
    assert scanner.to_table() == scanner.to_reader().read_all()


def test_a_scan_reads_nothing_until_it_is_asked(lake, dataset, caplog):
    scanner, batches = dataset.scanner(), dataset.to_batches()
    lake.store.delete(file.key for file in data_files(lake))
    with pytest.raises(pa.ArrowInvalid):
        scanner.to_reader().read_all()
    assert "no such object" in caplog.text
    with pytest.raises(NotFound):
        next(batches)


def test_a_snapshot_stays_what_it_was(lake, dataset):
    lake.append("a.b", ROWS)
    assert (dataset.count_rows(), lake.dataset("a.b").count_rows()) == (7, 14)


@pytest.mark.parametrize(
    "refused",
    [
        pickle.dumps,
        lambda one: pickle.dumps(ds.dataset([one])),
        lambda one: one.children[0].filesystem.delete_file("a/1/0.arrow"),
    ],
)
def test_what_a_snapshot_cannot_do_is_said_so(dataset, refused):
    with pytest.raises(Unsupported):
        refused(dataset)


def test_errors_are_told_before_an_engine_hides_them(lake):
    told = []
    watched = EngineDataset(lake.source("a.b")).watched(told.append)
    for file in data_files(lake):
        lake.store.put(file.key, b"x" * file.size_bytes)
    with duckdb.connect(":memory:") as connection:
        connection.register("d", watched)
        with pytest.raises(duckdb.Error):
            connection.execute("select sum(i) from d")
    assert isinstance(told[0], Damaged)


EXPRESSIONS = [
    pl.col("f") > 2,
    pl.col("f") >= 5,
    pl.col("f") != 1,
    ~(pl.col("f") < 2),
    pl.col("f") == NAN,
    pl.col("f") == 0.0,
    pl.col("f").is_in([1.0, NAN]),
    pl.col("f").is_nan(),
    pl.col("f").is_not_nan(),
    pl.col("f").is_null(),
    pl.col("i").is_in([1, 5]),
    (pl.col("f") > 2) & (pl.col("i") < 3),
    (pl.col("f") > 2) | (pl.col("i") < 2),
    pl.col("i") % 3 == 2,
    pl.col("i").is_between(2, 4),
    pl.col("s").struct.field("x") > 2,
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_polars_gets_its_own_answer(dataset, expression):
    lazy = pl.scan_pyarrow_dataset(dataset).filter(expression).select("i", "f").collect()
    assert lazy.equals(pl.from_arrow(ROWS).filter(expression).select("i", "f"), null_equal=True)


def test_not_in_through_polars_keeps_nulls_as_arrow_does(dataset):
    """Polars hands over Arrow's is_in, which is false for a null, and believes that it is null."""
    some = ~pl.col("i").is_in([1, 5])
    plain = pl.scan_pyarrow_dataset(ds.dataset(ROWS)).filter(some).select("i").collect()
    assert pl.scan_pyarrow_dataset(dataset).filter(some).select("i").collect().equals(plain, null_equal=True)


def test_polars_reads_no_more_than_it_needs(lake, dataset):
    pl.scan_pyarrow_dataset(dataset).filter(pl.col("i") > 4).select("f").collect()
    ((columns, filter_),) = lake.asked
    assert (set(columns), filter_) == ({"i", "f"}, "(i > 4)")

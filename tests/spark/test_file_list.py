from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from underlay.spark.file_list import encode_files, hand_over
from underlay.spark.gateway import gateway_of

pytestmark = pytest.mark.local_only

SIZES = [0, 127, 128, 2**31, 2**40 + 1]
NAMES = ["a.parquet", "with space.parquet", "per%20cent.parquet", "é.parquet", f"{'long' * 60}.parquet"]


def test_files_arrive_with_their_paths_and_sizes(spark: SparkSession):
    gateway = gateway_of(spark)
    found = list(
        hand_over(gateway, encode_files([f"file:///my folder/{name}" for name in NAMES], SIZES, SIZES), len(NAMES))
    )
    assert [one.getPath().toString() for one in found] == [f"file:/my folder/{name}" for name in NAMES]
    assert [one.getLen() for one in found] == SIZES
    assert [one.getModificationTime() for one in found] == SIZES
    assert all(one.isFile() for one in found)


@pytest.mark.parametrize("count", [0, 1, 3000])
def test_any_number_of_files_arrives(spark: SparkSession, count: int):
    encoded = encode_files([f"s3a://bucket/x/{n}.parquet" for n in range(count)], range(count))
    found = hand_over(gateway_of(spark), encoded, count)
    assert len(found) == count
    if count:
        assert found[count - 1].getPath().toString() == f"s3a://bucket/x/{count - 1}.parquet"


def test_a_length_for_each_name_is_needed():
    with pytest.raises(ValueError, match="shorter"):
        encode_files(["a", "b"], [1])

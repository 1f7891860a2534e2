from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from underlay.spark.files.file_statuses import hand_over
from underlay.spark.jvm.gateway import gateway_of

pytestmark = pytest.mark.local_only

SIZES = [0, 127, 128, 2**31, 2**40 + 1]
NAMES = ["a.parquet", "with space.parquet", "per%20cent.parquet", "é.parquet", f"{'long' * 60}.parquet"]


@pytest.mark.parametrize("at_once", [1, 2, len(NAMES)])
def test_files_arrive_with_their_paths_and_sizes(spark: SparkSession, at_once: int):
    gateway, paths = gateway_of(spark), [f"file:///my folder/{name}" for name in NAMES]
    parts = [slice(begin, begin + at_once) for begin in range(0, len(NAMES), at_once)]
    found = [one for part in parts for one in hand_over(gateway, paths[part], SIZES[part], SIZES[part])]
    assert [one.getPath().toString() for one in found] == [f"file:/my folder/{name}" for name in NAMES]
    assert [one.getLen() for one in found] == SIZES
    assert [one.getModificationTime() for one in found] == SIZES
    assert {one.getBlockSize() for one in found} == {128 << 20}
    assert all(one.isFile() for one in found)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 3000])
def test_any_number_of_files_arrives(spark: SparkSession, count: int):
    found = hand_over(gateway_of(spark), [f"s3a://bucket/x/{n}.parquet" for n in range(count)], range(count))
    assert len(found) == count
    if count:
        assert found[count - 1].getPath().toString() == f"s3a://bucket/x/{count - 1}.parquet"


@pytest.mark.parametrize("count", [2, 3])
def test_a_length_for_each_name_is_needed(spark: SparkSession, count: int):
    with pytest.raises(ValueError, match="shorter"):
        hand_over(gateway_of(spark), ["a"] * count, [1])

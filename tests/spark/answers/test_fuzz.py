"""Random tables and conditions, the same ones each time; `python -m tests.spark.answers.fuzz` runs others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.gate import sized
from tests.spark.answers.fuzz import fuzz_table


@pytest.mark.parametrize("seed", range(1, sized(3, 5)))
def test_conditions_find_the_same_rows_as_in_memory(spark: SparkSession, tmp_path: Path, seed: int):
    assert fuzz_table(spark, tmp_path, seed, conditions=25) == []


@pytest.mark.parametrize("seed", range(5, sized(6, 7)))
def test_conditions_find_the_same_rows_through_the_ranged_reader(spark: SparkSession, tmp_path: Path, seed: int):
    assert fuzz_table(spark, tmp_path, seed, conditions=12, is_ranged=True) == []

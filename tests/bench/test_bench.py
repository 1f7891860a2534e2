"""The benchmarks run small: their answers and counts are checked, never their times.

`bench.tables` refuses to go on when two systems answer differently, so that a run that ends says that they agree.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from bench.change import QUICK as QUICK_CHANGES
from bench.change import run as run_changes
from bench.changes.systems import CHANGING
from bench.common.measured import Measured
from bench.common.questions import make_questions
from bench.common.trips import BLOCKS
from bench.pm import run
from bench.queries import check_same
from bench.registry import Size as RegistrySize
from bench.registry import run as run_registry
from bench.small_commits import NAMES as SMALL_NAMES
from bench.small_commits import ratios as small_ratios
from bench.small_commits import run as run_small_commits
from bench.systems.placed import OWN
from bench.tables import Size, describe_run
from bench.tables import run as run_tables

from bench import warm
from underlay.index.sealed_json import IDS_BYTES

FILES = 24
SIZE = Size.quick(FILES)
CASES = ("import", "time", "point", "sum", "count", "plan", "growth", "append", "opens")


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> list[Measured]:
    return list(run_tables(SIZE, source=tmp_path_factory.mktemp("bench"), only=CASES))


def case(tables: list[Measured], beginning: str) -> Measured:
    (found,) = [one for one in tables if one.case.startswith(beginning)]
    return found


def test_the_sidecar_benchmark_counts_what_it_should():
    result = run(small=True)
    for shape in result["open"]:
        assert shape["sidecar_bytes"] <= shape["footer_bytes"]
        assert shape["row_groups_kept"] == 2
        assert shape["times_faster_in_memory"] > 0
    for step in result["append"]:
        padding_and_footer = 7 + 40 + 8
        assert step["written_bytes"] <= step["block_bytes"] + 4 * (step["row_groups"] + 1) + padding_and_footer


def test_every_question_is_put_to_the_peers_in_the_same_run(tables):
    for question in make_questions(FILES):
        systems = {name.split()[0] for name in case(tables, f"{question}:").seconds}
        assert systems == {"underlay", "deltalake", "ducklake"}


def test_a_wrong_answer_is_not_timed():
    question = make_questions(FILES)["time"]
    with pytest.raises(AssertionError, match="other answers from wrong"):
        check_same({"right": question.expected, "wrong": question.expected.slice(1)}, question)


def test_an_answer_in_another_order_and_with_other_types_of_text_is_the_same():
    question = make_questions(FILES)["time"]
    other = question.expected.take(pa.array(range(question.expected.num_rows - 1, -1, -1)))
    at = other.schema.get_field_index("note")
    check_same({"other": other.set_column(at, "note", other.column("note").cast(pa.large_string()))}, question)


def test_a_warm_plan_asks_for_the_head_and_nothing_else(tables):
    for question in ("time", "point"):
        work = case(tables, f"plan of {question} alone").work["underlay plan"]
        assert (work.requests, work.received_bytes) == (1, 0)


def test_a_warm_plan_asks_for_no_more_when_there_are_more_files(tables):
    works = case(tables, "plan of time over").work
    assert [(work.requests, work.received_bytes) for work in works.values()] == [(1, 0), (1, 0)]


def test_a_warm_selective_scan_makes_one_request_after_the_head_check(tables):
    assert case(tables, "time:").work["underlay scan"].requests == 2


def test_only_bloom_filters_find_an_id_and_a_scan_reads_few_blocks_for_it(tables):
    work = case(tables, "point:").work["underlay scan"]
    assert 2 <= work.requests <= 1 + FILES * BLOCKS // 10


def test_a_count_comes_from_metadata(tables):
    work = case(tables, "count:").work["underlay scan"]
    assert (work.requests, work.received_bytes) == (1, 0)


def test_registering_reads_each_file_at_most_twice(tables):
    constant = 10
    assert case(tables, "import of").work["underlay"].requests <= 2 * FILES + constant


def test_an_append_takes_six_requests_and_waits_for_few(tables):
    """Two of them see that its base is still there (R14). That it waits for two is shown in
    `end_to_end/test_requests.py`, where the puts wait for each other."""
    work = case(tables, "append of").work["underlay"]
    assert (work.requests, work.received_bytes) == (6, 2 * IDS_BYTES)
    assert work.writes_in_sequence in (2, 3)


def test_requests_of_an_open_do_not_grow_with_commits(tables):
    few, many = (work.requests for work in case(tables, "open and plan after").work.values())
    probes_from_the_hint = 6  # by how far the head is from it, which commits in a row do not change
    segments = 2
    assert many <= few + probes_from_the_hint + segments


def test_the_result_says_what_was_compared(tables):
    result = describe_run(SIZE, tables, ["pyiceberg"])
    assert result["files"] == FILES
    assert all(found["ratio"] > 0 and found["best_peer"] for found in result["cases"])
    assert all(one.lines() for one in tables)


REGISTRY_SIZE = RegistrySize(files=6, rounds=1, tables=3, versions=20)


@pytest.mark.storm
def test_a_cold_open_with_a_registry_asks_no_more_of_the_store(tmp_path):
    """Each system in fresh processes; what an open asks for is counted in `registry/mirror/test_opening.py` too."""
    for measured in run_registry(REGISTRY_SIZE, source=tmp_path, only=("local",)):
        assert {"deltalake", "ducklake"} < measured.seconds.keys()
        without, *with_registry = (measured.work[name].requests for name in OWN)
        assert max(with_registry) <= without


def test_a_restore_reads_each_object_once(tmp_path):
    size = REGISTRY_SIZE
    (restored,) = run_registry(size, source=tmp_path, only=("restore",))
    lists_and_others, catalog = 10 * size.tables, 10
    segments = 3 * size.tables
    assert restored.work["underlay"].requests <= size.tables * size.versions + segments + lists_and_others + catalog


def test_the_benchmark_of_changes_ends_with_the_same_rows_everywhere(tmp_path: Path):
    """It raises when two systems differ after the last round."""
    costs, extra = run_changes(QUICK_CHANGES, tmp_path, [kind.name for kind in CHANGING])
    assert {(cost.case, cost.system) for cost in costs} == {
        (cost.case, kind.name) for cost in costs for kind in CHANGING
    }
    ours = {cost.case: cost.changed for cost in costs if cost.system == "underlay"}
    adjacent, spread = ours["upsert adjacent"], ours["upsert spread"]
    assert adjacent is not None
    assert spread is not None
    assert (adjacent.rows_updated, adjacent.blocks_read) == (50, 1)
    assert adjacent.bytes_read < spread.bytes_read
    assert set(extra) == {"next_query", "peak_bytes"}


def test_warm_queries_and_commits_run_and_sql_costs_little_python_beside_a_scan(tmp_path):
    found = warm.run(tmp_path / "lakes", tmp_path / "source", 20, 1, 1, warm.CASES)
    calls = found["queries"]["python_calls"]
    assert calls["plan"] < calls["scan"] < calls["sql"] < 1.6 * calls["scan"]
    assert min(found["queries"]["cpu_seconds"].values()) > 0
    assert found["commits"]["cpu"]["quiet"]["count"] > 0
    assert all(min(one) > 0 for seconds in found["imports"].values() for one in seconds)


def test_small_commits_of_all_systems_have_the_same_rows_and_versions(tmp_path: Path):
    costs = run_small_commits(tmp_path, appends=30, rounds=1, names=SMALL_NAMES)
    cases = {"appends", "open and history", "open and full scan"}
    assert {(cost.case, cost.system) for cost in costs} == {(case, name) for case in cases for name in SMALL_NAMES}
    assert all(cost.cpu_seconds > 0 for cost in costs)
    peers = {name for name in SMALL_NAMES if name != "underlay"}
    assert {case: set(found) for case, found in small_ratios(costs).items()} == dict.fromkeys(cases, frozenset(peers))

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.end_to_end.lakes import NAME, memory, quick
from tests.gate import costly
from underlay.store.testing.counting import CountingStore

WORDS = pa.schema([("word", pa.string()), ("number", pa.int64())])


def table_of(files: list[list[str | None]], **options: object):
    table = quick(memory()).create_table(NAME, WORDS, key=["word"], **options)
    for words in files:
        table.append(pa.table({"word": words, "number": range(len(words))}, WORDS))
    return table


@costly
@given(
    files=st.lists(
        st.lists(st.sampled_from([*"abcdefgh", "", "ä", None]), min_size=1, max_size=6), min_size=1, max_size=4
    ),
    wanted=st.lists(st.sampled_from([*"abcdefghz", "", "ä"]), min_size=1, max_size=3, unique=True),
)
def test_no_row_is_lost_by_a_filter(files: list[list[str | None]], wanted: list[str]):
    table = table_of(files)
    where = "word in ({})".format(", ".join(f"'{word}'" for word in wanted))
    found = table.scan(["word"], where).to_arrow()["word"].to_pylist()
    assert found == [word for words in files for word in words if word in wanted]


def test_filters_drop_blocks_of_one_file():
    words = [f"{number % 2}-{number:04}" for number in range(100)]
    words = sorted(words, key=lambda word: word[2:])
    table = table_of([words], properties={"block_rows": "10"})
    plan = table.plan(where="word = '0-0042'")
    assert plan.total.blocks == 10
    assert plan.kept.blocks == 1
    assert "bloom" in plan.explain()


def test_a_word_that_no_file_has_reads_no_file():
    table = table_of([["a", "m", "z"], ["b", "m", "y"]])
    assert table.plan(where="word = 'n'").kept.files == 0
    assert table.count("word = 'n'") == 0


def test_one_of_two_equalities_is_enough():
    table = table_of([["a", "m", "z"], ["b", "n", "y"]])
    assert table.plan(where="word = 'm' and number = 1").kept.files == 1
    assert table.plan(where="word = 'm' or word = 'n'").kept.files == 2


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("not word = 'm'", ["a", "z", "b", "n", "y"]),
        ("word <> 'm'", ["a", "z", "b", "n", "y"]),
        ("word = 'm' or number = 0", ["a", "m", "b"]),
    ],
)
def test_what_is_no_equality_for_every_row_drops_nothing(where: str, expected: list[str]):
    table = table_of([["a", "m", "z"], ["b", "n", "y"]])
    assert table.scan(["word"], where).to_arrow()["word"].to_pylist() == expected


def test_a_property_turns_filters_off():
    store = CountingStore(memory())
    table = quick(store).create_table(NAME, WORDS, key=["word"], properties={"bloom": ""})
    for words in (["a", "m", "z"], ["b", "n", "y"]):
        table.append(pa.table({"word": words, "number": range(3)}, WORDS))
    store.reset()
    assert table.plan(where="word = 'n'").kept.files == 2
    assert not [served for served in store.log if "/_pm/" in served.request.keys[0]]

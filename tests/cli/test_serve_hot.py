"""Which directory of hot partitions `underlay serve` takes."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from underlay.cli.serve.run import ServeChoice, choose_hot
from underlay.errors import InvalidRequest


def chosen(**given: str | None) -> ServeChoice:
    known: dict[str, object] = {one.name: None for one in fields(ServeChoice)}
    return ServeChoice(**{**known, "hot_dataset": "hot", "hot_new_columns": "add", **given})  # type: ignore[arg-type]


def test_the_option_counts_before_the_file_and_without_both_there_are_none(tmp_path: Path):
    found = choose_hot(chosen(hot=str(tmp_path / "a")), str(tmp_path / "b"))
    assert found is not None
    assert found.folder == tmp_path / "a"
    by_file = choose_hot(chosen(hot_dataset="lab", hot_new_columns="ignore"), str(tmp_path / "b"))
    assert by_file is not None
    assert (by_file.folder, by_file.dataset, by_file.new_columns) == (tmp_path / "b", "lab", "ignore")
    assert choose_hot(chosen(), None) is None


@pytest.mark.parametrize("given", [{"hot_new_columns": "maybe"}, {"hot": "x", "hot_dataset": "a b"}])
def test_unknown_policies_and_names_are_refused(given: dict[str, str]):
    with pytest.raises(InvalidRequest):
        choose_hot(chosen(**given), None)

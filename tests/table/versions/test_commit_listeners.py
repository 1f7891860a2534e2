from __future__ import annotations

from collections.abc import Iterator

import pytest

import underlay as ul
from underlay.table.versions.commit_listeners import unwatch, watch

Heard = list[tuple[str, str]]


@pytest.fixture
def heard() -> Iterator[Heard]:
    found: Heard = []

    def watcher(store_url: str, folder: str) -> None:
        found.append((store_url, folder))

    watch(watcher)
    yield found
    unwatch(watcher)


def test_commits_of_any_lake_are_told_by_store_and_folder(heard: Heard):
    lake = ul.connect("memory://watched", registry="none")
    table = lake.create_table("a.b", "id bigint")
    folder = lake.tables()[0].folder
    heard.clear()
    table.comment("x")
    assert heard == [(lake.url, folder)]


def test_drop_is_told_once_the_catalog_has_it(heard: Heard):
    lake = ul.connect("memory://dropped", registry="none")
    lake.create_table("a.b", "id bigint")
    heard.clear()
    lake.drop_table("a.b")
    assert heard == [(lake.url, "_catalog")]
    assert lake.tables() == []


def test_watcher_that_was_taken_away_is_not_told():
    heard: Heard = []

    def watcher(store_url: str, folder: str) -> None:
        heard.append((store_url, folder))

    watch(watcher)
    unwatch(watcher)
    ul.connect("memory://unwatched", registry="none").create_table("a.b", "id bigint")
    assert heard == []

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread, get_ident
from threading import enumerate as threads

import pytest
from sqlalchemy import Connection, text

from underlay.registry.database.database import Database, open_database
from underlay.registry.follow import ask
from underlay.registry.follow.ask import Asking


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = open_database(f"sqlite:///{tmp_path / 'registry.sqlite'}")
    with found.write() as connection:
        connection.execute(text("CREATE TABLE numbers (number INTEGER)"))
    yield found
    found.close()


@pytest.fixture
def asking(database: Database, monkeypatch) -> Asking:
    monkeypatch.setattr(ask, "ANSWER_SECONDS", 300.0)
    return Asking(lambda: database)


def which_thread(connection: Connection) -> int:
    return get_ident()


def asking_threads() -> list[Thread]:
    return [thread for thread in threads() if thread.name == "underlay-registry-ask"]


def ask_until_kept(asking: Asking) -> int:
    """Ask, and wait until the thread that answered is ready for the next question."""
    answered = asking.ask(which_thread)
    while not asking._threads._idle:
        Event().wait(0.001)
    assert answered is not None
    return answered


def test_one_question_after_another_is_asked_by_one_thread(asking: Asking):
    assert len({ask_until_kept(asking) for _ in range(20)}) == 1


def test_a_question_that_hangs_is_not_in_the_way_of_others(asking: Asking, monkeypatch, caplog):
    go_on, answers = Event(), []
    hanging = Thread(target=lambda: answers.append(asking.ask(lambda _: go_on.wait(300))))
    hanging.start()
    assert asking.ask(which_thread) is not None
    go_on.set()
    hanging.join()
    assert answers == [True]
    assert caplog.records == []


def test_what_has_no_answer_in_time_is_left_alone(asking: Asking, monkeypatch, caplog):
    monkeypatch.setattr(ask, "ANSWER_SECONDS", 0.01)
    go_on = Event()
    assert asking.ask(lambda _: go_on.wait(300)) is None
    assert asking.is_resting
    assert "no answer within" in caplog.text
    go_on.set()


def test_a_table_that_is_missing_is_no_answer_and_not_said(asking: Asking, caplog):
    assert asking.ask(lambda connection: connection.execute(text("SELECT * FROM missing")).all()) is None
    assert not asking.is_resting
    assert caplog.records == []


def test_a_closed_one_answers_nothing_and_keeps_no_thread(asking: Asking):
    ask_until_kept(asking)
    kept = asking_threads()
    asking.close()
    for thread in kept:
        thread.join(300)
    assert asking.ask(which_thread) is None


def test_a_thread_without_questions_ends(asking: Asking, monkeypatch):
    monkeypatch.setattr(ask, "IDLE_SECONDS", 0.01)
    ask_until_kept(asking)
    for thread in asking_threads():
        thread.join(300)
    assert asking.ask(which_thread) is not None


def test_a_forked_child_asks_with_threads_of_its_own(asking: Asking):
    ask_until_kept(asking)
    child = os.fork()
    if child == 0:
        os._exit(0 if asking.ask(which_thread) is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert asking.ask(which_thread) is not None

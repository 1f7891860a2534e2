"""Verbs on a disk that fails at each of their calls. Run by `test_faulty_disk.py`, with the library preloaded.

    python -m tests.disk.program FOLDER STEP BEGIN FAILURE VERB …

Each point has a copy of one lake, a lake object that stays open through the failure, and ends with what must hold: an
acknowledged change is there, a refused one is not, what was there before reads as it did, the message names the file,
the reason and what to do, and both the same lake object and a new one go on.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import chain, count
from pathlib import Path

import underlay
from tests.disk.faulty_disk import CHANGES, Disk, Failure, Kind
from tests.end_to_end.faults.test_faults import BEFORE, NEW, OPERATIONS, import_files, unregister
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.maintain.audit import audit
from tests.maintain.late_store import LateStore
from tests.table.checker import Checker
from tests.table.entries import surroundings
from underlay.errors import CommitUnknown, SnapshotExpired, TableExists, TableNotFound, UnderlayError
from underlay.store import Store, open_store

FAILURES = {
    "EIO": Failure(errno.EIO, CHANGES),
    "EIO when read": Failure(errno.EIO, Kind.OPEN | Kind.READ),
    "EIO for good": Failure(errno.EIO, CHANGES, is_lasting=True),
    "EIO after it was done": Failure(errno.EIO, Kind.LINK | Kind.SYNC | Kind.FOLDER, is_done=True),
    "syncs fail for good": Failure(errno.EIO, Kind.SYNC, is_lasting=True),
    "EDQUOT": Failure(errno.EDQUOT, Kind.CREATE | Kind.WRITE | Kind.LINK | Kind.FOLDER | Kind.SYNC, is_lasting=True),
    "ENOSPC": Failure(errno.ENOSPC, Kind.CREATE | Kind.WRITE | Kind.LINK | Kind.FOLDER, is_lasting=True),
    "EROFS": Failure(errno.EROFS, CHANGES, is_lasting=True),
}
LATER = timedelta(days=60)


def expire(lake: underlay.Lake) -> object:
    return lake.table(NAME).expire("1d", 1, dry_run=False)


def is_expired(lake: underlay.Lake) -> bool:
    with suppress(SnapshotExpired):
        lake.table(NAME, version=0)
        return False
    return True


def sweep(lake: underlay.Lake) -> object:
    return lake.sweep("1d", dry_run=False)


def is_swept(lake: underlay.Lake) -> bool:
    return not audit(open_store(lake.url)).orphans


OF_MEMORY = (unregister, import_files)
"""Their files are in the memory of another process."""
VERBS: dict[str, tuple[Callable[[underlay.Lake], object], Callable[[underlay.Lake], bool]]] = {
    **{work.__name__: (work, is_done) for work, is_done in OPERATIONS if work not in OF_MEMORY},
    "expire": (expire, is_expired),
    "sweep": (sweep, is_swept),
}
CARE = ("expire", "sweep")


def main(folder: Path, step: int, begin: int, name: str, verbs: list[str]) -> dict[str, Counter[str]]:
    """Fail at one point after another until each verb makes no more calls; how it ended, and how often."""
    disk = Disk()
    disk.quick(folder)
    found: dict[str, Counter[str]] = {}
    for verb in verbs:
        template = folder / f"{verb} template"
        make_template(template, verb)
        found[verb] = Counter()
        for point in chain([0], count(begin or step, step)):  # a verb may make fewer calls than a step
            with copied(template, folder / "lake") as place:
                try:
                    outcome = one_point(disk, place, verb, FAILURES[name], point)
                except BaseException:
                    print(f"{verb}, {name}, call {point}", file=sys.stderr)
                    raise
            if outcome is None:
                break
            found[verb][outcome] += 1
    return found


@contextmanager
def copied(template: Path, place: Path) -> Iterator[Path]:
    """A copy of the lake, for a while."""
    shutil.copytree(template, place)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def make_template(folder: Path, verb: str) -> None:
    """A lake with two versions of rows, a file to register, and for a sweep what writers that died left."""
    store = open_store(folder)
    lake = quick(store)
    table = lake.create_table(NAME, SCHEMA, key=["id"], sort_by=["id"])
    table.append(rows(BEFORE[:3]))
    table.append(rows(BEFORE[3:]))
    import pyarrow.parquet as pq

    (folder / "incoming").mkdir()
    pq.write_table(rows(NEW), folder / "incoming" / "new.parquet")
    if verb == "sweep":
        keys = table.snapshot().keys
        for number in range(3):
            store.put(f"{keys.folder}/{number:09}-{number + 1:016x}.parquet", b"left")


def quick(store: Store) -> underlay.Lake:
    """A lake without waits and without a registry."""
    return underlay.Lake(store, surroundings=surroundings(put_attempts=3), registry=None)


def opened(folder: Path, verb: str) -> underlay.Lake:
    store = open_store(folder)
    return quick(LateStore(store, LATER) if verb in CARE else store)


def one_point(disk: Disk, folder: Path, verb: str, failure: Failure, point: int) -> str | None:
    """How the verb ended when this call of it failed; None when it makes fewer calls."""
    work, is_done = VERBS[verb]
    lake = opened(folder, verb)
    reader = quick(open_store(folder)).table(NAME)
    assert ids(lake.table(NAME)) == ids(reader) == BEFORE
    error: UnderlayError | None = None
    with disk.failing(folder, failure, point):
        try:
            work(lake)
        except UnderlayError as raised:
            error = raised
        with suppress(UnderlayError):
            assert ids(reader) in allowed(verb), "a reader found other rows while the disk failed"
    if not disk.failed:
        assert error is None, error
        return None
    is_found = is_done(opened(folder, verb))
    if error is None:
        assert is_found or verb in CARE, "acknowledged and not there"
    elif not isinstance(error, CommitUnknown):
        assert not is_found or verb in CARE, f"there in spite of {error!r}: {error}"
    if error is not None:
        check_message(error, folder, failure)
    do_again(lake, verb, is_found)
    for writer in (lake, opened(folder, verb)):
        go_on(writer)
    check_stored(folder, verb)
    return "done" if error is None else "unknown" if isinstance(error, CommitUnknown) else "refused"


def allowed(verb: str) -> tuple[list[int], ...]:
    """The rows that a reader may see."""
    return BEFORE, BEFORE + NEW, BEFORE[:3], BEFORE[3:] + NEW, []


def check_message(error: UnderlayError, folder: Path, failure: Failure) -> None:
    """That it names the place, the reason and what to do."""
    text = str(error)
    assert error.hint, f"does not say what to do: {text}"
    if isinstance(error, CommitUnknown):
        assert error.commit_id, text
        assert any(word in text for word in ("history", "next process", "tag again")), text
        return
    assert str(folder) in text, f"names no path below {folder}: {text}"
    assert os.strerror(failure.error) in text, f"does not say why: {text}"


def do_again(lake: underlay.Lake, verb: str, is_found: bool) -> None:
    """The same lake object does it now, or says that it was done."""
    work, is_done = VERBS[verb]
    refusal: UnderlayError | None = None
    try:
        work(lake)
    except UnderlayError as error:
        refusal = error
    assert refusal is None or is_found, refusal
    is_told = isinstance(refusal, TableExists | TableNotFound) or re.search("already|of this name", str(refusal))
    assert refusal is None or is_told, refusal
    assert is_done(lake), "not done by the second try"


def go_on(lake: underlay.Lake) -> None:
    """Append to every table, and read."""
    for table in [one.name for one in lake.tables()]:
        before = ids(lake.table(table))
        number = 7_000 + len(before)
        lake.table(table).append(rows([number]))
        assert ids(lake.table(table)) == sorted([*before, number])


def check_stored(folder: Path, verb: str) -> None:
    """What the objects say, without the code that wrote them; and that no temporary file passes for one."""
    store = open_store(folder)
    if verb in CARE:
        assert not audit(store).missing
    else:
        Checker(store).check()
    for found in store.list_objects():
        assert not re.search(r"(^|/)\.", found.key), found.key


if __name__ == "__main__":
    place, step, begin, name, *verbs = sys.argv[1:]
    print(json.dumps(main(Path(place), int(step), int(begin), name, verbs or list(VERBS))))

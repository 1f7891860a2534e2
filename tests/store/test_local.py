"""What a directory adds to the contract: durability, crashes, file systems, and the ways a name can mislead."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.synchronize import Barrier as ProcessBarrier
from pathlib import Path

import pytest

from underlay.errors import InvalidRequest, NotFound, Replaced, Unavailable, Unsupported
from underlay.store import publish
from underlay.store.key import TEMPORARY
from underlay.store.local import LocalStore
from underlay.store.probe import probe_store
from underlay.store.store import Outcome
from underlay.values.ranges import ByteRange


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(root)


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


class Trace:
    """What the store did to the file system, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.steps: list[str] = []
        self.root = root
        for name in ("fsync", "link", "rename", "unlink", "mkdir"):
            monkeypatch.setattr(os, name, self.traced(name, getattr(os, name)))

    def traced(self, name: str, call: Callable[..., None]) -> Callable[..., None]:
        def step(*args, **kwargs) -> None:
            self.steps.append(f"{name} {self.shown(args[0])}")
            call(*args, **kwargs)

        return step

    def shown(self, target: int | str | Path) -> str:
        path = Path(os.readlink(f"/proc/self/fd/{target}")) if isinstance(target, int) else Path(target)
        if path.name.startswith(TEMPORARY):
            return "temporary"
        return str(path.relative_to(self.root.parent)) if path.is_absolute() else str(path)


def test_a_create_syncs_the_file_then_links_then_syncs_the_folder(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    store.put("a/first", b"x")
    trace = Trace(monkeypatch, root)
    store.create("a/b", b"x")
    assert trace.steps == ["fsync temporary", "link temporary", "unlink temporary", "fsync lake/a"]


def test_a_put_syncs_the_file_then_renames_then_syncs_the_folder(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    store.put("a/first", b"x")
    trace = Trace(monkeypatch, root)
    store.put("a/b", b"x")
    assert trace.steps == ["fsync temporary", "rename temporary", "unlink temporary", "fsync lake/a"]


def test_every_new_folder_is_synced_into_its_parent_before_anything_is_published_in_it(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    trace = Trace(monkeypatch, root)
    store.create("a/b/c", b"x")
    before, _, after = " | ".join(trace.steps).partition("link temporary")
    assert before.split(" | ")[:6] == ["mkdir lake", "fsync .", "mkdir a", "fsync lake", "mkdir b", "fsync lake/a"]
    assert after.split(" | ")[-1] == "fsync lake/a/b"


def test_a_folder_that_another_process_made_is_synced_once(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    (root / "a").mkdir(parents=True)
    trace = Trace(monkeypatch, root)
    store.create("a/b", b"x")
    store.create("a/c", b"x")
    assert trace.steps.count("fsync lake") == 1
    assert trace.steps[0] == "fsync lake"


def test_a_refusal_syncs_what_stands_in_the_way(store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch):
    store.create("a/b", b"x")
    trace = Trace(monkeypatch, root)
    assert store.create("a/b", b"y") is Outcome.REFUSED
    assert trace.steps == ["fsync lake/a"]


def nothing_is_taken(folder: int, name: str) -> bool:
    """What a writer sees just before another one is first."""
    return False


def test_the_second_of_two_that_saw_nothing_is_refused(store: LocalStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("underlay.store.local.is_taken", nothing_is_taken)
    assert store.create("a/b", b"x") is Outcome.DONE
    assert store.create("a/b", b"y") is Outcome.REFUSED
    assert bytes(store.get("a/b")[0]) == b"x"


def fail_on_call(number: int, call: Callable[..., object], code: int) -> Callable[..., object]:
    calls = iter(range(100))

    def wrapped(*args, **kwargs):
        if next(calls) == number:
            raise OSError(code, os.strerror(code))
        return call(*args, **kwargs)

    return wrapped


def test_a_failed_sync_after_the_link_is_unknown(store: LocalStore, monkeypatch: pytest.MonkeyPatch):
    store.put("first", b"x")
    monkeypatch.setattr(os, "fsync", fail_on_call(1, os.fsync, errno.EIO))
    assert store.create("a", b"x") is Outcome.UNKNOWN
    assert store.head("a") is not None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_failed_sync_before_the_link_leaves_nothing(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch, code: int
):
    store.put("first", b"x")
    monkeypatch.setattr(os, "fsync", fail_on_call(0, os.fsync, code))
    with pytest.raises(Unavailable, match=os.strerror(code)):
        store.create("a", b"x")
    assert files(root) == ["first"]


def test_a_full_disk_leaves_nothing_behind(root: Path):
    """The limit on file sizes stands in for the disk: the write is cut short in the same place."""
    script = f"""
import resource, signal
from underlay.errors import Unavailable
from underlay.store.local import LocalStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
store = LocalStore({str(root)!r})
for write in (store.create, store.put):
    try:
        write("a", bytes(10000))
    except Unavailable as error:
        print(error.problem)
print(store.create("b", bytes(4096)).name)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [os.strerror(errno.EFBIG)] * 2 + ["DONE"]
    assert files(root) == ["b"]


def test_a_full_file_system_leaves_nothing_behind(tmp_path: Path):
    script = f"""
import os
from underlay.errors import Unavailable
from underlay.store.local import LocalStore
store = LocalStore({str(tmp_path)!r})
for write in (store.create, store.put):
    try:
        write("a", bytes(1 << 20))
    except Unavailable as error:
        print(error.problem)
print(os.listdir(store.root), store.create("b", b"x").name)
"""
    mount = 'mount -t tmpfs -o size=256k none "$0" && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", mount, str(tmp_path), sys.executable, "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    refusal = errno.ENOSPC
    if "unshare" in run.stderr or "mount" in run.stderr:  # not permitted here: a limit on files is refused alike
        limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))"
        run = subprocess.run([sys.executable, "-c", limit + script], capture_output=True, text=True, check=True)
        refusal = errno.EFBIG
    assert run.stdout.splitlines() == [os.strerror(refusal)] * 2 + ["[] DONE"]


WRITER = """
import sys
from underlay.store.local import LocalStore
store = LocalStore(sys.argv[1])
for number in range(10_000):
    data = b"%08d" % number * 50_000
    write = store.create if number % 2 else store.put
    write(f"{number % 3}/{number:08}", data)
    print(number, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [1, 4, 9])
def test_a_killed_writer_leaves_whole_objects_only(store: LocalStore, root: Path, acknowledged: int):
    with subprocess.Popen([sys.executable, "-c", WRITER, str(root)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(acknowledged)]
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in writer.stdout]
    found = {object.key.rpartition("/")[2]: object for object in store.list_objects()}
    assert {f"{number:08}" for number in said} <= set(found)
    for name, object in found.items():
        assert store.get(object.key)[0] == name.encode() * 50_000


def test_temporary_files_are_no_objects(store: LocalStore, root: Path):
    store.put("a/b", b"x")
    (root / "a" / f"{TEMPORARY}left").write_bytes(b"half")
    (root / f"{TEMPORARY}folder").mkdir()
    assert [found.key for found in store.list_objects()] == ["a/b"]
    assert list(store.list_folders()) == ["a"]


_barrier: ProcessBarrier | None = None


def _set_barrier(barrier: ProcessBarrier) -> None:
    global _barrier
    _barrier = barrier


def _race(root: str) -> list[int]:
    store = LocalStore(root)
    assert _barrier is not None
    _barrier.wait()
    return [n for n in range(40) if store.create(f"race/{n}", str(os.getpid()).encode()) is Outcome.DONE]


def test_of_eight_racing_processes_one_creates_each_key(store: LocalStore, root: Path):
    context = multiprocessing.get_context("spawn")
    with context.Pool(8, _set_barrier, (context.Barrier(8),)) as pool:
        done = pool.map(_race, [str(root)] * 8, chunksize=1)
    assert sorted(number for numbers in done for number in numbers) == list(range(40))
    assert len(files(root)) == 40


def refuse_links(*args, **kwargs) -> None:
    raise OSError(errno.EPERM, "no hard links here")


def test_without_hard_links_a_rename_that_refuses_to_replace_does(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "link", refuse_links)
    monkeypatch.setattr("underlay.store.local.is_taken", nothing_is_taken)
    assert store.create("a", b"first") is Outcome.DONE
    assert store.create("a", b"second") is Outcome.REFUSED
    assert bytes(store.get("a")[0]) == b"first"
    assert files(root) == ["a"]
    probe_store(store)


def test_a_file_system_that_has_neither_is_refused(store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "link", refuse_links)
    monkeypatch.setattr(publish, "_LIBC", object())
    with pytest.raises(Unsupported, match="hard links"):
        probe_store(store)
    assert files(root) == []


def test_a_link_that_was_repeated_and_met_itself_is_done(store: LocalStore, monkeypatch: pytest.MonkeyPatch):
    link = os.link

    def repeated(*args, **kwargs) -> None:
        link(*args, **kwargs)
        link(*args, **kwargs)

    monkeypatch.setattr(os, "link", repeated)
    assert store.create("a", b"x") is Outcome.DONE


def test_a_create_whose_obstacle_is_deleted_meanwhile_is_still_refused(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "link", fail_on_call(0, os.link, errno.EEXIST))
    assert store.create("a", b"x") is Outcome.REFUSED


def test_a_link_that_fails_unclearly_is_unknown(store: LocalStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "link", fail_on_call(0, os.link, errno.EIO))
    assert store.create("a", b"x") is Outcome.UNKNOWN


def test_a_link_that_is_not_permitted_raises(store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "link", fail_on_call(0, os.link, errno.EACCES))
    with pytest.raises(Unavailable, match="Permission denied"):
        store.create("a", b"x")
    assert files(root) == []


def test_symbolic_links_are_no_objects_and_lead_nowhere(store: LocalStore, root: Path, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"x")
    store.put("a", b"x")
    (root / "file").symlink_to(tmp_path / "outside" / "secret")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "inside").symlink_to(root / "a")
    assert [found.key for found in store.list_objects()] == ["a"]
    assert list(store.list_folders()) == []
    assert list(store.list_objects("folder")) == []
    for key in ("file", "folder/secret", "inside"):
        assert store.head(key) is None
        with pytest.raises(NotFound):
            store.get(key)
    with pytest.raises(InvalidRequest):
        store.create("folder/new", b"x")
    store.delete(["folder/secret"])
    assert files(tmp_path / "outside") == ["secret"]


def test_the_root_may_be_a_symbolic_link(root: Path, tmp_path: Path):
    root.mkdir()
    (tmp_path / "link").symlink_to(root)
    LocalStore(tmp_path / "link").put("a", b"x")
    assert files(root) == ["a"]


@pytest.mark.parametrize("write", [LocalStore.create, LocalStore.put])
@pytest.mark.parametrize("key", ["a", "a/b/c"], ids=["over a folder", "below a file"])
def test_an_object_cannot_be_a_folder_too(store: LocalStore, write: Callable[..., object], key: str):
    store.put("a/b", b"x")
    with pytest.raises(InvalidRequest):
        write(store, key, b"y")
    assert [found.key for found in store.list_objects()] == ["a/b"]


def test_deleting_a_folder_is_deleting_nothing(store: LocalStore):
    store.put("a/b", b"x")
    store.delete(["a", "a/b/c"])
    assert store.head("a/b") is not None


def test_what_is_no_regular_file_is_no_object(store: LocalStore, root: Path):
    store.put("a", b"x")
    os.mkfifo(root / "pipe")
    assert store.head("pipe") is None
    with pytest.raises(NotFound):
        store.get("pipe")
    assert [found.key for found in store.list_objects()] == ["a"]


def test_a_file_that_is_written_to_while_it_is_read_is_replaced(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    store.put("a", bytes(100))
    pread = os.pread

    def disturbed(*args: int) -> bytes:
        with (root / "a").open("ab") as file:
            file.write(b"more")
        return pread(*args)

    monkeypatch.setattr(os, "pread", disturbed)
    with pytest.raises(Replaced, match="a"):
        store.get_ranges("a", [ByteRange(0, 10)])


def test_an_object_that_is_replaced_while_it_is_read_stays_whole(store: LocalStore, monkeypatch: pytest.MonkeyPatch):
    store.put("a", b"old")
    pread = os.pread

    def disturbed(*args: int) -> bytes:
        monkeypatch.setattr(os, "pread", pread)
        store.put("a", b"new")
        return pread(*args)

    monkeypatch.setattr(os, "pread", disturbed)
    assert bytes(store.get("a")[0]) == b"old"


def test_reading_makes_no_directory(store: LocalStore, root: Path):
    assert store.head("a") is None
    assert list(store.list_objects()) == []
    assert list(store.list_folders()) == []
    store.delete(["a/b"])
    assert not root.exists()

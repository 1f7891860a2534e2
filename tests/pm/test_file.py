"""The file protocol: lock-free readers, one writer, and what a crash leaves behind."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate import sized
from tests.pm.examples import block, sidecar_bytes, version
from underlay.errors import Busy, InvalidRequest, NotFound, Truncated, Unavailable
from underlay.pm.file import SidecarWriter, create_sidecar, read_sidecar
from underlay.pm.format.footers import walk
from underlay.pm.format.statistics import fixed_bounds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "_pm"
    create_sidecar(path, sidecar_bytes(blocks=2))
    return path


def test_a_created_sidecar_reads_and_leaves_no_temporary_file(path: Path):
    assert read_sidecar(path).row_group_count == 2
    assert os.listdir(path.parent) == ["_pm"]


def test_an_existing_sidecar_is_not_overwritten_unless_asked(path: Path):
    before = path.read_bytes()
    with pytest.raises(InvalidRequest, match="already"):
        create_sidecar(path, sidecar_bytes(blocks=5))
    assert path.read_bytes() == before
    create_sidecar(path, sidecar_bytes(blocks=5), replace=True)
    assert read_sidecar(path).row_group_count == 5
    assert os.listdir(path.parent) == ["_pm"]


def test_append_publishes_a_version_and_keeps_the_ones_before(path: Path):
    with SidecarWriter(path) as writer:
        for number in range(5):
            size = writer.append([0, 1, block(number)] if number == 0 else [0, 1, 2], version(1000 + number))
    newest = read_sidecar(path)
    assert newest.size == size == path.stat().st_size
    assert [f.parquet_size for f in walk(newest.data, newest.size)] == [1212, 1211, 1210, 1209, 1208, 708]
    assert read_sidecar(path, parquet_size=708).row_group_count == 2


def test_a_second_writer_is_kept_out_until_the_first_is_done(path: Path):
    with SidecarWriter(path), pytest.raises(Busy, match="another writer"), SidecarWriter(path):
        pass
    with SidecarWriter(path) as writer:
        writer.append([0, 1], version(900))


def test_a_writer_without_the_lock_cannot_append(path: Path):
    with pytest.raises(InvalidRequest, match="lock is not held"):
        SidecarWriter(path).append([0, 1], version(900))


def test_an_append_behind_a_published_but_uncommitted_version_skips_it(path: Path):
    with SidecarWriter(path) as writer:
        writer.append([0, 1, block(5)], version(5000))
        writer.append([0, 1, block(6)], version(6000), parquet_size=708)
    newest = read_sidecar(path)
    assert [f.parquet_size for f in walk(newest.data, newest.size)] == [6208, 708]
    assert fixed_bounds(newest, 1, "<i8").minimum.tolist() == [0, 1000, 6000]


def test_the_length_of_the_file_is_never_a_boundary(path: Path):
    size = read_sidecar(path).size
    with path.open("ab") as file:
        file.write(b"\x55" * 12345)
    assert read_sidecar(path).size == size
    with SidecarWriter(path) as writer:
        writer.append([0, 1, block(2)], version(900))
    assert read_sidecar(path).row_group_count == 3


def test_a_pinned_reader_of_a_large_sidecar_is_not_disturbed(tmp_path: Path):
    path = tmp_path / "_pm"
    create_sidecar(path, sidecar_bytes(blocks=3000))
    sidecar = read_sidecar(path)
    assert fixed_bounds(sidecar, 1, "<i8").minimum.tolist() == [i * 1000 for i in range(3000)]
    with SidecarWriter(path) as writer:
        writer.append([*range(3000), block(7)], version(9000))
    assert read_sidecar(path).row_group_count == 3001
    os.truncate(path, 0)
    assert sidecar.row_group_count == 3000
    assert fixed_bounds(sidecar, 1, "<i8").maximum.tolist() == [i * 1000 + 999 for i in range(3000)]
    with pytest.raises(Truncated):
        read_sidecar(path)


def test_a_missing_short_or_wrong_file_is_a_clear_error(tmp_path: Path):
    with pytest.raises(NotFound, match="no such file"):
        read_sidecar(tmp_path / "none")
    with pytest.raises(NotFound, match="directory"):
        read_sidecar(tmp_path)
    for size, blocks in ((3, 2), (400, 2), (300_000, 3000)):
        cut = tmp_path / f"cut{size}"
        cut.write_bytes(sidecar_bytes(blocks=blocks)[:size])
        with pytest.raises(Truncated, match=f"cut{size}"):
            read_sidecar(cut)


def test_a_pipe_in_place_of_a_file_is_an_error_and_no_endless_wait(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unavailable, match="pipe"):
        read_sidecar(tmp_path / "pipe")


def test_a_parquet_file_is_recognised(tmp_path: Path):
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(InvalidRequest, match=r"Parquet file, not a sidecar.*pm build"):
        read_sidecar(path)


def test_a_failed_sync_of_the_tail_publishes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    before = read_sidecar(path).size
    with SidecarWriter(path) as writer:
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(Unavailable, match="No space"):
            writer.append([0, 1, block(2)], version(900))
        monkeypatch.undo()
        assert read_sidecar(path).size == before
        writer.append([0, 1, block(3)], version(900))
    assert fixed_bounds(read_sidecar(path), 1, "<i8").minimum.tolist() == [0, 1000, 3000]


def test_a_failed_sync_of_the_size_says_that_the_version_is_visible(path: Path, monkeypatch: pytest.MonkeyPatch):
    calls = []

    def fail_second(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")

    with SidecarWriter(path) as writer:
        monkeypatch.setattr(os, "fsync", fail_second)
        with pytest.raises(Unavailable, match="published, but it may not survive"):
            writer.append([0, 1, block(2)], version(900))
    assert read_sidecar(path).row_group_count == 3


def test_the_tail_is_synced_before_the_size_is_published(path: Path, monkeypatch: pytest.MonkeyPatch):
    steps = []
    pwrite, fsync = os.pwrite, os.fsync
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: steps.append(at) or pwrite(fd, data, at))
    monkeypatch.setattr(os, "fsync", lambda fd: steps.append("sync") or fsync(fd))
    size = read_sidecar(path).size
    with SidecarWriter(path) as writer:
        writer.append([0, 1, block(2)], version(900))
    assert steps == [size, "sync", 0, "sync"]


WRITER = """
import sys
from tests.pm.examples import block, version
from underlay.pm.file import SidecarWriter, read_sidecar
path, count = sys.argv[1], int(sys.argv[2])
with SidecarWriter(path) as writer:
    newest = read_sidecar(path)
    number = (newest.parquet_size - 708) // 1000
    for number in range(number + 1, number + 1 + count):
        writer.append([0, 1 if number % 3 else block(number, text="t" * (9 + number % 50))],
                      version(500 + 1000 * number, seq_txn=number))
        print(number, flush=True)
"""

READER = """
import random, sys
from underlay.pm.file import read_sidecar
from underlay.pm.format.footers import walk
from underlay.pm.format.statistics import byte_bounds
path, last, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
pick, reads, newest = random.Random(seed), 0, -1
while newest < last:
    sidecar = read_sidecar(path)
    number = (sidecar.parquet_size - 708) // 1000
    assert number >= newest, "a reader went back"
    newest = number
    pinned = read_sidecar(path, parquet_size=708 + 1000 * pick.randint(0, number))
    wanted = (pinned.parquet_size - 708) // 1000
    assert pinned.sections.seq_txn == (wanted or None)
    replaced = wanted - wanted % 3
    bound = byte_bounds(pinned, 2, "max").to_pylist()[1]
    assert bound == (b"t" * (9 + replaced % 50) if replaced else None), (wanted, bound)
    assert len(list(walk(pinned.data, pinned.size))) == wanted + 1
    reads += 1
    if reads == 1:
        print("reading", flush=True)
print(reads)
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def test_readers_pin_any_version_while_a_writer_appends(path: Path):
    versions = sized(500, 2000)
    readers = [start(READER, path, versions, seed) for seed in range(3)]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
    writer = start(WRITER, path, versions)
    assert writer.communicate(timeout=240)[0].split()[-1] == str(versions)
    for reader in readers:
        reads = int(reader.communicate(timeout=240)[0])
        assert reader.returncode == 0
        assert reads > 1
    assert len(list(walk(path.read_bytes(), path.stat().st_size))) == versions + 1


def test_a_killed_writer_leaves_every_committed_version_readable(path: Path):
    pick = random.Random(20)
    committed = 0
    for _ in range(sized(4, 12)):
        with start(WRITER, path, 100_000) as writer:
            assert writer.stdout is not None
            seen = [int(writer.stdout.readline()) for _ in range(pick.randrange(2, 100))]
            writer.send_signal(signal.SIGKILL)
            seen += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
        newest = read_sidecar(path)
        number = (newest.parquet_size - 708) // 1000
        assert number in (seen[-1], seen[-1] + 1)  # the last one may have been published and not yet announced
        assert seen[0] == committed + 1
        for wanted in {0, 1, number // 2, seen[-1]}:
            assert read_sidecar(path, parquet_size=708 + 1000 * wanted).parquet_size == 708 + 1000 * wanted
        committed = number
    assert committed > sized(4, 12)


def test_junk_left_between_the_tail_and_its_publication_is_harmless(path: Path):
    """Every state a crash can leave before the size is published: a prefix of the tail behind the committed size."""
    committed = path.read_bytes()
    with SidecarWriter(path) as writer:
        writer.append([0, 1, block(2)], version(900))
    after = path.read_bytes()
    for length in range(len(committed), len(after), 7):
        path.write_bytes(struct.pack("<Q", len(committed)) + after[8:length])
        assert read_sidecar(path).row_group_count == 2
        with SidecarWriter(path) as writer:
            writer.append([0, 1, block(2)], version(900))
        assert path.read_bytes() == after

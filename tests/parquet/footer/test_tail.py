from __future__ import annotations

import io

import pyarrow as pa
import pytest

from tests.parquet import footers
from underlay.errors import Malformed, NotFound, Truncated, Unsupported
from underlay.parquet.footer.tail import GUESS_BYTES, load_footer, read_tail, seal


class CountingFile(io.BytesIO):
    reads = 0

    def read(self, size=-1):
        self.reads += 1
        return super().read(size)


def test_a_small_footer_takes_one_read():
    data = footers.example()
    file = CountingFile(data)
    loaded = load_footer(file)
    assert file.reads == 1
    assert loaded.raw == footers.footer_bytes(data)
    assert loaded.tail == read_tail(data[-8:], len(data))
    assert loaded.file_size == len(data)


def test_a_large_footer_takes_two_reads():
    data = footers.written(pa.table({f"column {n}": [n] for n in range(1500)}))
    file = CountingFile(data)
    loaded = load_footer(file)
    assert loaded.tail.footer_length > GUESS_BYTES
    assert file.reads == 2
    assert loaded.raw == footers.footer_bytes(data)


def test_sealing_a_footer_is_undone_by_reading_the_tail():
    sealed = b"PAR1" + seal(b"x" * 30)
    assert read_tail(sealed, len(sealed)) == (4, 30)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", Truncated),
        (b"PAR1PAR1", Truncated),
        (b"PAR1" + seal(b""), Malformed),
        (b"PAR1" + b"\xff\xff\xff\xff" + b"PAR1", Malformed),
        (b"PAR1" + b"x" * 10 + b"\x0b\0\0\0PAR1", Malformed),
        (b"PAR1" + b"x" * 10 + b"\x0a\0\0\0PARX", Malformed),
        (b"PARE" + b"x" * 10 + b"\x0a\0\0\0PARE", Unsupported),
    ],
)
def test_files_that_are_not_parquet_are_refused(data, error, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(error, match=str(path)):
        load_footer(path)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(NotFound, match="no such file"):
        load_footer(tmp_path / "missing.parquet")
    with pytest.raises(NotFound, match="is a directory"):
        load_footer(tmp_path)


def test_an_encrypted_footer_is_unsupported(fixtures):
    with pytest.raises(Unsupported, match="encrypted"):
        load_footer(fixtures / "parquet-testing/data/encrypt_columns_and_footer.parquet.encrypted")

"""`underlay pm build`: QuestDB's own bytes, one file per input, nothing on failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import installed, underlay
from tests.cli.conftest import Pair
from tests.genuine import conversions, label

# Every conversion is compared in pm/convert/test_footer.py; here, that the command writes what is made there.
SOME = conversions()[::100]


@pytest.mark.parametrize(("data", "made", "generation"), SOME, ids=lambda v: label(v) if v != str(v) else v)
def test_the_file_is_byte_for_byte_questdbs(data: Path, made: Path, generation: str, tmp_path: Path):
    target = tmp_path / "_pm"
    run = underlay("pm", "build", data, "-o", target, "--generation", generation)
    assert (run.code, run.output) == (0, b"")
    assert target.read_bytes() == made.read_bytes()


def test_the_installed_script_builds_beside_the_data(trips: Pair):
    before = trips.sidecar.read_bytes()
    trips.sidecar.unlink()
    run = installed("pm", "build", trips.data)
    assert (run.returncode, run.stdout) == (0, b"")
    assert run.stderr.decode().startswith(f"{trips.sidecar}: ")
    assert trips.sidecar.read_bytes() == before


def test_out_dir_is_made_and_json_names_each_sidecar(trips: Pair, tmp_path: Path):
    other = trips.data.with_name("other.parquet")
    other.write_bytes(trips.data.read_bytes())
    folder = tmp_path / "a" / "b"
    run = underlay("pm", "build", trips.data, other, "--out-dir", folder, "--json")
    assert (run.code, run.words) == (0, "")
    names = {"trips.pm": trips.data, "other.pm": other}
    size = trips.sidecar.stat().st_size
    assert run.objects == [
        {"file": str(data), "sidecar": str(folder / name), "bytes": size} for name, data in names.items()
    ]
    assert {path.name for path in folder.iterdir()} == set(names)


def test_dash_is_stdout(trips: Pair):
    run = underlay("pm", "build", trips.data, "-o", "-")
    assert (run.code, run.output, run.words) == (0, trips.sidecar.read_bytes(), "")


def test_a_failing_input_does_not_keep_the_others_from_being_built(trips: Pair, tmp_path: Path):
    run = underlay("pm", "build", tmp_path / "none.parquet", trips.data, "--out-dir", tmp_path / "out", "--json")
    assert run.code == 3
    assert [line["file"] for line in run.objects] == [str(trips.data)]
    assert "none.parquet: no such file or directory" in run.words


def test_an_existing_sidecar_is_left_alone_without_force(trips: Pair):
    trips.sidecar.write_bytes(b"mine")
    run = underlay("pm", "build", trips.data)
    assert run.code == 2
    assert "--force" in run.words
    assert trips.sidecar.read_bytes() == b"mine"
    assert underlay("pm", "build", trips.data, "--force").code == 0
    assert trips.sidecar.read_bytes() != b"mine"


def test_force_never_replaces_a_parquet_file(trips: Pair):
    before = trips.data.read_bytes()
    run = underlay("pm", "build", trips.data, "-o", trips.data, "--force")
    assert run.code == 2
    assert "this is a Parquet file" in run.words
    assert trips.data.read_bytes() == before


def refused(trips: Pair, tmp_path: Path) -> list[tuple[int, str, list[object]]]:
    """(exit code, words of the message, arguments)."""
    empty, folder, text = tmp_path / "empty", tmp_path / "folder", tmp_path / "text"
    empty.touch()
    folder.mkdir()
    text.write_text("no Parquet file, but long enough for one")
    out = ["-o", tmp_path / "out.pm"]
    return [
        (3, "no such file or directory", [tmp_path / "none", *out]),
        (3, "is a directory", [folder, *out]),
        (4, "too short", [empty, *out]),
        (4, "this is not a Parquet file", [text, *out]),
        (4, "this is not a Parquet file", [trips.sidecar, *out]),
        (3, "no such directory", [trips.data, "-o", tmp_path / "nowhere" / "out.pm"]),
        (2, "this is a directory", [trips.data, "-o", folder]),
        (2, "this is a file, not a directory", [trips.data, "--out-dir", empty]),
        (2, "2 inputs would be written to", [trips.data, trips.data, "--out-dir", tmp_path / "new"]),
        (2, "-o takes one input", [trips.data, tmp_path / "b.parquet", *out]),
        (2, "-o takes one input", [trips.data, "--out-dir", folder, *out]),
        (2, "would both write to stdout", [trips.data, "-o", "-", "--json"]),
        (2, "is not one of", [trips.data, "--generation", "11", *out]),
    ]


def test_what_cannot_be_done_is_said_and_nothing_is_written(trips: Pair, tmp_path: Path):
    cases = refused(trips, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for code, words, arguments in cases:
        run = underlay("pm", "build", *arguments)
        assert words in run.words
        assert "Traceback" not in run.words
        assert (run.code, run.output) == (code, b"")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_directory_without_permission_is_said(trips: Pair):
    run = underlay("pm", "build", trips.data, "-o", "/sys/out.pm")  # where nobody may write, not even root
    assert run.code == 7
    assert "Permission denied" in run.words

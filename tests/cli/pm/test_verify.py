"""`underlay pm verify`: exit code 1 and one object per file."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import installed, underlay
from tests.cli.conftest import Pair
from tests.genuine import fixtures


def damaged(trips: Pair) -> Path:
    data = bytearray(trips.sidecar.read_bytes())
    data[len(data) // 2] ^= 1
    path = trips.sidecar.with_name("damaged.pm")
    path.write_bytes(data)
    return path


def test_a_sound_sidecar_passes_every_check(trips: Pair):
    for extra in ([], ["--parquet", trips.data], ["--parquet", trips.data, "--deep"]):
        run = underlay("pm", "verify", trips.sidecar, *extra)
        assert (run.code, run.text, run.words) == (0, f"ok      {trips.sidecar}\n", "1 of 1 sidecar sound\n")


def test_json_has_one_object_per_file(trips: Pair, tmp_path: Path):
    bad, missing = damaged(trips), tmp_path / "none.pm"
    run = installed("pm", "verify", "--json", trips.sidecar, bad, missing, trips.data)
    assert (run.returncode, run.stderr) == (1, b"")
    objects = [json.loads(line) for line in run.stdout.splitlines()]
    assert [(row["file"], row["ok"]) for row in objects] == [
        (str(trips.sidecar), True),
        (str(bad), False),
        (str(missing), False),
        (str(trips.data), False),
    ]
    assert objects[0]["error"] is None
    assert "checksum" in objects[1]["error"]
    assert "no such file" in objects[2]["error"]
    assert "this is a Parquet file" in objects[3]["error"]
    assert all(row["problems"][0] == row["error"] for row in objects[1:])


def test_data_that_is_another_file_is_found_out(trips: Pair):
    other = fixtures() / "questdb" / "10.0.0" / "three_groups" / "data.parquet"
    run = underlay("pm", "verify", trips.sidecar, "--parquet", other)
    assert run.code == 1
    assert run.text.startswith(f"FAILED  {trips.sidecar}\n")
    assert "0 of 1 sidecar sound" in run.words


def test_a_directory_stands_for_the_data_file_of_each_sidecar(trips: Pair):
    run = underlay("pm", "verify", trips.sidecar, trips.sidecar, "--parquet", trips.data.parent, "--deep")
    assert run.code == 0
    renamed = trips.sidecar.with_name("other.pm")
    trips.sidecar.rename(renamed)
    run = underlay("pm", "verify", renamed, "--parquet", trips.data.parent)
    assert run.code == 1
    assert "other.parquet" in run.text


def test_data_files_must_match_the_sidecars_in_number(trips: Pair):
    run = underlay("pm", "verify", trips.sidecar, trips.sidecar, "--parquet", trips.data)
    assert (run.code, run.output) == (2, b"")
    assert "(expected 2, found 1)" in run.words


def test_deep_needs_the_data(trips: Pair):
    run = underlay("pm", "verify", trips.sidecar, "--deep")
    assert (run.code, run.output) == (2, b"")
    assert "--parquet" in run.words


def test_questdbs_own_files_are_sound():
    folder = fixtures() / "questdb" / "10.0.0" / "chain3"
    run = underlay("pm", "verify", folder / "_pm", "--parquet", folder / "data.parquet", "--deep")
    assert run.code == 0

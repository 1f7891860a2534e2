"""`underlay pm verify`."""

from __future__ import annotations

from pathlib import Path

import typer

from underlay.cli.common.output import print_json, say, show_count, track
from underlay.cli.pm.build import PARQUET_SUFFIX, SUFFIX
from underlay.errors import InvalidRequest, UnderlayError
from underlay.pm.verify import verify

_SHOWN_PROBLEMS = 10


def verify_sidecars(files: list[Path], parquet: list[Path], *, deep: bool, json: bool) -> None:
    """Check each file; exit code 1 when any has a problem."""
    if deep and not parquet:
        raise InvalidRequest("--deep compares with decoded values", hint="Give --parquet DATA as well.")
    bad = 0
    for file, data in track(list(zip(files, _data_files(files, parquet), strict=True)), "verifying"):
        problems = _problems(file, data, deep=deep)
        bad += bool(problems)
        _report(file, problems, json=json)
    if not json:
        say(f"{len(files) - bad} of {show_count(len(files), 'sidecar')} sound")
    if bad:
        raise typer.Exit(1)


def _data_files(files: list[Path], parquet: list[Path]) -> list[Path | None]:
    """The Parquet file of each sidecar: none, those given, or NAME.parquet for NAME.pm in the given directory."""
    if not parquet:
        return [None] * len(files)
    if len(parquet) == 1 and parquet[0].is_dir():
        return [parquet[0] / (file.name.removesuffix(SUFFIX) + PARQUET_SUFFIX) for file in files]
    if len(parquet) != len(files):
        raise InvalidRequest(
            "--parquet must be given once for each FILE, in their order, or once with a directory",
            expected=len(files),
            found=len(parquet),
        )
    return list(parquet)


def _problems(file: Path, data: Path | None, *, deep: bool) -> list[UnderlayError]:
    try:
        return verify(file, data, deep=deep)
    except UnderlayError as error:
        return [error]


def _report(file: Path, problems: list[UnderlayError], *, json: bool) -> None:
    if json:
        texts = [str(problem) for problem in problems]
        print_json({"file": str(file), "ok": not problems, "error": texts[0] if texts else None, "problems": texts})
        return
    if not problems:
        print(f"ok      {file}")
        return
    print(f"FAILED  {file}")
    for problem in problems[:_SHOWN_PROBLEMS]:
        print(f"        {problem}")
    if len(problems) > _SHOWN_PROBLEMS:
        print(f"        … and {len(problems) - _SHOWN_PROBLEMS} more; --json has all of them")

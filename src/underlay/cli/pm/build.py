"""`underlay pm build`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from underlay.cli.common.output import binary_output, end_with, print_json, say, show_bytes, try_each
from underlay.errors import InvalidRequest, NotFound, Unavailable
from underlay.parquet.footer.tail import MAGIC
from underlay.pm.convert.build import BloomMode, from_parquet
from underlay.pm.file import create_sidecar
from underlay.pm.format.values import Generation

SUFFIX = ".pm"
PARQUET_SUFFIX = ".parquet"


def build_sidecars(
    inputs: list[Path],
    *,
    output: Path | None,
    out_dir: Path | None,
    generation: Generation,
    blooms: BloomMode,
    backfill: bool,
    force: bool,
    json: bool,
) -> None:
    """Build one sidecar per input; a file that fails is reported and the others are built."""

    def build_one(pair: tuple[Path, Path | None]) -> None:
        path, target = pair
        if target is not None:
            _check_target(target, will_make_directory=out_dir is not None, force=force)
        data = from_parquet(path, generation=generation, blooms=blooms, backfill=backfill)
        if target is None:
            binary_output().write(data)
            return
        if out_dir is not None:
            _make_directory(out_dir)
        create_sidecar(target, data, replace=force)
        if json:
            print_json({"file": str(path), "sidecar": str(target), "bytes": len(data)})
        else:
            say(f"{target}: {show_bytes(len(data))}")

    targets = _targets(inputs, output, out_dir)
    if json and None in targets:
        raise InvalidRequest("--json and -o - would both write to stdout", hint="Leave one of them out.")
    end_with(try_each(list(zip(inputs, targets, strict=True)), build_one, "building"))


def _targets(inputs: list[Path], output: Path | None, out_dir: Path | None) -> list[Path | None]:
    """Where each sidecar goes; None for stdout. Refuses two inputs for one place before anything is written."""
    if output is not None and (out_dir is not None or len(inputs) > 1):
        raise InvalidRequest("-o takes one input and no --out-dir", hint="Use --out-dir for several files.")
    if output is not None:
        return [None if str(output) == "-" else output]
    targets = [(out_dir or path.parent) / (path.name.removesuffix(PARQUET_SUFFIX) + SUFFIX) for path in inputs]
    target, count = Counter(targets).most_common(1)[0]
    if count > 1:
        sources = ", ".join(str(path) for path, goal in zip(inputs, targets, strict=True) if goal == target)
        raise InvalidRequest(
            f"{count} inputs would be written to {target}: {sources}", hint="Give each once, or build one with -o."
        )
    return list(targets)


def _check_target(target: Path, *, will_make_directory: bool, force: bool) -> None:
    """Refuse a place that cannot or must not be written, before any work is done for it."""
    if not will_make_directory and not target.parent.is_dir():
        raise NotFound("no such directory", place=str(target.parent), hint="Create it, or use --out-dir, which does.")
    if target.is_dir():
        raise InvalidRequest(
            "this is a directory", place=str(target), hint="Name a file, or use --out-dir for a directory."
        )
    if not target.exists():
        return
    if not force:
        raise InvalidRequest(
            "the file exists already", place=str(target), hint="Give --force to replace it, or another name."
        )
    if _is_parquet(target):
        raise InvalidRequest(
            "this is a Parquet file", place=str(target), hint="--force replaces sidecars only; choose another name."
        )


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InvalidRequest("this is a file, not a directory", place=str(path)) from None
    except OSError as error:
        raise Unavailable(
            f"the directory cannot be created: {error.strerror}", place=str(path), hint="Nothing was written."
        ) from None

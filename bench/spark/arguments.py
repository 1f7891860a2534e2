"""What benchmarks on Spark are told on the command line."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.spark.environment import Environment, make_environment

_ROOT = Path(__file__).parents[2]


def parse_arguments(
    description: str | None, *, scales: Iterable[str], cases: Iterable[str], folder: str
) -> argparse.Namespace:
    """`scale`, the cases in `only`, `repeat` (0: the scale says), `environment`, and `source`, where files are made."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--scale", choices=scales, default="small", help="tiny shows only that it works; %(default)s")
    parser.add_argument("--only", nargs="+", choices=cases, default=list(cases), help="some cases")
    parser.add_argument("--repeat", type=int, default=0, help="rounds of every case, unless the scale says")
    parser.add_argument(
        "--environment", type=Path, default=_ROOT / ".venv-bench-spark", help="folder of Spark and jars; %(default)s"
    )
    parser.add_argument(
        "--source",
        type=lambda text: Path(text).resolve(),
        default=Path(tempfile.gettempdir(), "underlay-bench", folder).resolve(),
        help="where files are made; %(default)s",
    )
    return parser.parse_args()


def open_environment(folder: Path) -> Environment:
    """A Spark that all systems support, made in a folder unless it is there; says what is missing."""
    environment = make_environment(folder)
    for problem in environment.missing:
        print(f"missing, so that peers are not measured: {problem}", flush=True)
    return environment

"""A Spark that every measured system supports, and the peers' jars: fetched once, kept in a folder of their own.

The newest Spark for which both peers publish jars is older than the one that Underlay is developed with. It is put into
a folder that comes first on the path of the measured processes; everything else is that of this interpreter. Jars are
fetched by Spark itself, from where it takes packages, and are used only when their SHA-256 is the one below.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from underlay.spark.start.java_home import cache_folder, find_java_home

SPARK = "4.1.4"
DELTA = "4.4.0"
ICEBERG = "1.12.0"
_JARS = {
    f"io.delta:delta-spark_4.1_2.13:{DELTA}": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    f"io.delta:delta-storage:{DELTA}": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    f"io.delta:delta-kernel-api:{DELTA}": "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    f"io.delta:delta-kernel-defaults:{DELTA}": "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    f"io.delta:delta-kernel-unitycatalog:{DELTA}": "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}": (
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
    ),
}
"""The peers' packages, and the SHA-256 of their jars. Spark brings everything else that they need."""
_FETCH = """
import sys
from pyspark.sql import SparkSession
settings = {"spark.jars.packages": sys.argv[1], "spark.jars.ivy": sys.argv[2]}
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for name, value in settings.items():
    builder = builder.config(name, value)
builder.getOrCreate().stop()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What measured processes run with. Without jars there are no peers."""

    python_path: Path | None
    """The folder with this Spark; None for the one that is installed."""
    jars: tuple[Path, ...]
    missing: tuple[str, ...] = ()
    """What could not be had, and why."""


def make_environment(folder: Path) -> Environment:
    """The environment in `folder`, completed where something lacks; what it does is said on stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    problem = _fetch_spark(folder / "python")
    if problem is not None:
        return Environment(python_path=None, jars=(), missing=(problem, "the peers' jars, which need that Spark"))
    problem = _fetch_jars(folder)
    jars = () if problem is not None else tuple(_jar(folder, package) for package in _JARS)
    return Environment(python_path=folder / "python", jars=jars, missing=() if problem is None else (problem,))


def _fetch_spark(folder: Path) -> str | None:
    """Install Spark into the folder unless it is there; the problem, None when there is none."""
    if (folder / f"pyspark-{SPARK}.dist-info").is_dir():
        return None
    _say(f"installing pyspark {SPARK} into {folder}, some 450 MB")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), f"pyspark=={SPARK}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"pyspark {SPARK}: {ran.stderr.strip()[-300:]}" if ran.returncode else None


def _fetch_jars(folder: Path) -> str | None:
    """Have Spark fetch the jars unless they are there; the problem, None when there is none."""
    if all(map(_is_right, [folder] * len(_JARS), _JARS)):
        return None
    _say(f"fetching {len(_JARS)} jars of Delta Lake and Iceberg into {folder}")
    java = str(find_java_home(os.environ, cache_folder(os.environ)))
    environment = {**os.environ, "JAVA_HOME": java, "PYTHONPATH": str(folder / "python")}
    command = [sys.executable, "-c", _FETCH, ",".join(_JARS), str(folder / "ivy")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wrong = [package for package in _JARS if not _is_right(folder, package)]
    return f"{wrong[0]}: {ran.stderr.strip()[-300:] or 'another SHA-256'}" if wrong else None


def _jar(folder: Path, package: str) -> Path:
    """Where Spark puts the jar of a package."""
    return folder / "ivy" / "jars" / f"{package.replace(':', '_', 1).replace(':', '-')}.jar"


def _is_right(folder: Path, package: str) -> bool:
    jar = _jar(folder, package)
    return jar.exists() and _sum_of(jar.read_bytes()) == _JARS[package]


def _sum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)

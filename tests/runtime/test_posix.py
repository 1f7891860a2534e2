"""Underlay on an operating system without POSIX files: imported, and used as far as it goes."""

from __future__ import annotations

import subprocess
import sys

WINDOWS = """
import ctypes, mmap, os, sys, tempfile, subprocess, logging, threading, socket, importlib.util, asyncio
import numpy, pyarrow, pyarrow.dataset, duckdb, obstore.store, msgspec, sqlglot  # these run on Windows
sys.modules["fcntl"] = None
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "fcntl" else find_spec(name, package)
for name in ("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC", "pread", "preadv", "register_at_fork", "fork"):
    delattr(os, name)
for name in ("PROT_READ", "MAP_SHARED"):
    delattr(mmap, name)
CDLL = ctypes.CDLL
def no_libc(name, *rest, **options):
    if name is None:
        raise TypeError("LoadLibrary() argument 1 must be str, not None")
    return CDLL(name, *rest, **options)
ctypes.CDLL = no_libc
"""


USED = """
import pyarrow as pa, underlay as ul
lake = ul.connect("memory://windows")
table = lake.create_table("a.b", "i bigint")
table.append(pa.table({"i": [1, 2, 3]}))
print(table.scan(where="i > 1").to_arrow().num_rows, lake.sql("select max(i) from a.b").fetchall())
try:
    ul.connect("lake")
except ul.errors.Unsupported as error:
    print(error)
from underlay.cli.app import app
import underlay.cli.pm.inspect, underlay.cli.pm.build, underlay.registry.database.engine
print("imported")
"""


def test_without_posix_lakes_in_memory_work_and_lakes_in_folders_are_refused():
    run = subprocess.run([sys.executable, "-c", WINDOWS + USED], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    rows, refused, imported = run.stdout.splitlines()
    assert rows == "2 [(3,)]"
    assert "POSIX" in refused
    assert "WSL" in refused
    assert imported == "imported"

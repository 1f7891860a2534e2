"""Finds Chromium for the page's tests, and gets one: `python -m tests.page.chromium`.

As root on Debian it is the system's package. Else it is the one that npm's `@sparticuz/chromium` carries, in
`.venv/chromium`. `--if-possible` says what is missing and succeeds.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pyarrow as pa
from hatch_build import ROOT, find_node

OWN = ROOT / ".venv" / "chromium"
VARIABLE = "UNDERLAY_CHROMIUM"
MISSING = (
    "the page's tests need Chromium: install it (Debian: apt-get install chromium), or name one in UNDERLAY_CHROMIUM"
)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PACKAGE = "@sparticuz/chromium@153"


def find_chromium() -> Path | None:
    """The program; None where there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    on_path = next(filter(None, map(shutil.which, _NAMES)), None)
    if on_path is not None:
        return Path(on_path)
    return OWN / "chromium" if (OWN / "chromium").is_file() else None


def libraries_of(program: Path) -> dict[str, str]:
    """The environment in which the program finds its libraries, if it came with them."""
    own = program.parent / "lib"
    return {"LD_LIBRARY_PATH": str(own)} if program.parent == OWN and own.is_dir() else {}


def get_chromium() -> str | None:
    """Get one; returns why that failed."""
    reasons = []
    if os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (install, ["apt-get", "update", "-q"], install):
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if command is install and done.returncode == 0 and find_chromium():
                return None
        reasons.append(done.stderr.strip()[-500:])
    if (found := find_node()) is not None:
        try:
            _unpack(found[1])
        except (OSError, subprocess.CalledProcessError, pa.ArrowInvalid) as error:
            reasons.append(f"{_PACKAGE}: {getattr(error, 'stderr', None) or error}")
        else:
            return None
    return "; ".join(reasons) or "this is not root, and there is no Node"


def _unpack(npm: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [*npm, "pack", "--json", "--pack-destination", folder, _PACKAGE]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        made = json.loads(done.stdout)
        with tarfile.open(Path(folder) / (made[0] if isinstance(made, list) else made)["filename"]) as archive:
            archive.extractall(folder, filter="data")
        packed = Path(folder) / "package" / "bin"
        OWN.mkdir(parents=True, exist_ok=True)
        for path in sorted(packed.rglob("*.tar.br")):
            with tarfile.open(fileobj=io.BytesIO(_plain(path))) as archive:
                archive.extractall(OWN, filter="data")
        (program,) = packed.rglob("chromium.br")
        target = OWN / "chromium"
        target.with_suffix(".new").write_bytes(_plain(program))
        target.with_suffix(".new").chmod(0o755)
        target.with_suffix(".new").rename(target)


def _plain(path: Path) -> bytes:
    with pa.input_stream(str(path), compression="brotli") as stream:
        return stream.read()


def main(arguments: list[str]) -> int:
    """Print where Chromium is, after getting it if there is none."""
    failed = get_chromium() if find_chromium() is None else None
    if failed is not None:
        print(f"There is no Chromium: {MISSING}. ({failed})", file=sys.stderr)
        return 0 if "--if-possible" in arguments else 1
    if "--if-possible" not in arguments:
        print(find_chromium())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

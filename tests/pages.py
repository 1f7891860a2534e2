"""Runs a page of the documentation: its fenced blocks in order, in a folder of its own.

`python` blocks of a page share one namespace. In a `console` block each line after `$ ` is a command, which must
succeed; lines below it, if there are any, are its output, where `…` stands for anything. A comment before a block
can say `<!-- not run: why -->`; `<!-- setup … -->` holds Python that readers do not see, such as rows to append.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

RUN = ("python", "console")
SHOWN = ("text", "sql", "toml", "json", "ini", "yaml", "makefile")
"""Languages of blocks that are only shown."""

_PIECE = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->$"
    r"|^(?:<!-- not run: (?P<why>.+?) -->\n)?(?P<indent> *)```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_DRIVER = """
import fnmatch, subprocess, sys

def _console(place, text):
    commands = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands and commands[-1][0].endswith("\\\\"):
            commands[-1] = (commands[-1][0] + "\\n" + line, [])
        elif commands and line.strip():
            commands[-1][1].append(line.rstrip())
    for command, expected in commands:
        run = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True)
        said = [line.rstrip() for line in (run.stdout + run.stderr).splitlines() if line.strip()]
        if run.returncode:
            sys.exit(f"{place}: $ {command}\\nexit {run.returncode}\\n" + "\\n".join(said))
        pattern = "\\n".join(expected).replace("[", "[[]").replace("*", "[*]").replace("?", "[?]").replace("…", "*")
        if expected and not fnmatch.fnmatchcase("\\n".join(said), pattern):
            sys.exit(f"{place}: $ {command}\\nexpected:\\n" + "\\n".join(expected) + "\\nfound:\\n" + "\\n".join(said))

_names = {"__name__": "__main__"}
"""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block, or the setup that stands in a comment."""

    line: int
    language: str
    text: str
    why_not_run: str | None = None


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page in order."""
    text = page.read_text()
    found = []
    for piece in _PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if piece["setup"] is not None:
            found.append(Block(line=line, language="python", text=piece["setup"]))
            continue
        lines = piece["text"].splitlines()
        body = "\n".join(one.removeprefix(piece["indent"]) for one in lines)
        found.append(Block(line=line, language=piece["language"], text=body, why_not_run=piece["why"]))
    return found


def runs(page: Path, *, on_spark: bool) -> list[Block]:
    """The blocks that are run; without those that need Spark unless `on_spark`."""
    meant = [block for block in blocks_of(page) if block.language in RUN and block.why_not_run is None]
    return [block for block in meant if on_spark or not re.search(r"\bspark\b", block.text)]


def run_page(
    page: Path, folder: Path, python: Path | str, environment: dict[str, str], *, on_spark: bool = False
) -> None:
    """Run what a page shows, with this interpreter. Raises AssertionError with what the first block that fails said."""
    code = [_DRIVER]
    for block in runs(page, on_spark=on_spark):
        place = f"{page.name}:{block.line}"
        if block.language == "console":
            code.append(f"_console({place!r}, {block.text!r})")
        else:
            code.append(f"exec(compile({block.text!r}, {place!r}, 'exec'), _names)")
    driver = folder / ".page.py"
    driver.write_text("\n".join(code))
    run = subprocess.run(
        [python, driver],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, f"{page.name}\n{run.stdout}\n{run.stderr}"


if __name__ == "__main__":
    import os
    import tempfile

    for name in [name for name in sys.argv[1:] if name != "--spark"]:
        with tempfile.TemporaryDirectory() as folder:
            run_page(Path(name).resolve(), Path(folder), sys.executable, {**os.environ}, on_spark="--spark" in sys.argv)
        print(name, "runs")

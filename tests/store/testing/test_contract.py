"""The example of docs/store.md, run as a user would, in a folder without our tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.project.test_docs import DOCS


def test_the_example_of_the_docs_runs_the_contract(tmp_path: Path):
    (example,) = re.findall(r"```python\n(import pytest.*?)```", (DOCS / "store.md").read_text(), re.DOTALL)
    (tmp_path / "test_store.py").write_text(example)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_store.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b[4-9]\d passed", done.stdout)

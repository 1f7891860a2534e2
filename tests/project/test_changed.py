"""`make test-changed` chooses what a change can break, and little else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import changed

TREE = {
    "src/underlay/__init__.py": "if TYPE_CHECKING:\n    from underlay.api.lake import Lake\n",
    "src/underlay/low/__init__.py": "",
    "src/underlay/low/bytes.py": "",
    "src/underlay/low/text.py": "",
    "src/underlay/api/__init__.py": "",
    "src/underlay/api/lake.py": "def lake():\n    from underlay.low.bytes import read\n",
    "docs/errors.md": "",
    "tests/__init__.py": "",
    "tests/project/test_docs.py": "",
    "tests/program.py": "import underlay.low.text\n",
    "tests/low/__init__.py": "",
    "tests/low/conftest.py": "",
    "tests/low/test_bytes.py": "from underlay.low import bytes\n",
    "tests/low/test_text.py": "from underlay.low.text import read\n",
    "tests/test_lake.py": "import underlay\n",
    "tests/test_program.py": "RUN = ['-m', 'tests.program']\n",
    "bench/__init__.py": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("src/underlay/low/bytes.py", {"test_bytes", "test_lake"}),
        ("src/underlay/low/text.py", {"test_text", "test_program"}),
        ("src/underlay/api/lake.py", {"test_lake"}),
        ("src/underlay/__init__.py", {"test_lake", "test_bytes", "test_text", "test_program"}),
        ("src/underlay/low/__init__.py", {"test_lake", "test_bytes", "test_text", "test_program"}),
        ("tests/low/conftest.py", {"test_bytes", "test_text"}),
        ("tests/program.py", {"test_program"}),
        ("tests/test_lake.py", {"test_lake"}),
        ("README.md", set()),
    ],
)
def test_what_imports_a_changed_file_is_run(tree: Path, file: str, tests: set[str]):
    found = changed.broken_by([tree / file], changed.importers(tree), tree)
    assert {path.stem for path in found} == tests
    assert set(found.values()) <= {tree / file}


def test_a_deleted_module_breaks_what_still_imports_it(tree: Path):
    (tree / "src/underlay/low/text.py").unlink()
    found = changed.broken_by([tree / "src/underlay/low/text.py"], changed.importers(tree), tree)
    assert {path.stem for path in found} >= {"test_text"}


def test_settings_can_break_everything(tree: Path):
    assert changed.chosen([tree / "pyproject.toml"], tree) is None


def test_pages_break_the_tests_of_pages(tree: Path):
    page = tree / "docs" / "errors.md"
    assert changed.chosen([page], tree) == {tree / "tests/project/test_docs.py": page}

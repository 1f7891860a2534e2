"""The list of folders in docs/architecture.md, from their docstrings: `python -m tests.architecture` writes it anew."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.test_layers import FOLDERS, SOURCE

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
_LIST = re.compile(r"(?<=<!-- folders -->\n).*(?=<!-- end of folders -->)", re.DOTALL)


def folder_list() -> str:
    """One line for each folder: packages bottom first, and a folder before those in it."""
    folders = [folder for folder in FOLDERS if (SOURCE / folder).is_dir()]
    packages = list(dict.fromkeys(folder.split("/")[0] for folder in folders))
    return "".join(_tree(folders, package) for package in packages)


def _tree(folders: list[str], folder: str) -> str:
    inner = [other for other in folders if other.rpartition("/")[0] == folder]
    return _line(folder) + "".join(_tree(folders, other) for other in inner)


def _line(folder: str) -> str:
    first, *_ = (ast.get_docstring(ast.parse((SOURCE / folder / "__init__.py").read_text())) or "").split("\n")
    *parents, name = folder.split("/")
    return f"{'  ' * len(parents)}- `{name}`: {first}\n"


def described(page: str) -> str:
    """The folders as a page lists them."""
    found = _LIST.search(page)
    assert found is not None
    return found[0]


if __name__ == "__main__":
    PAGE.write_text(_LIST.sub(lambda _: folder_list(), PAGE.read_text()))

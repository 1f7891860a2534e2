"""What the documentation says is what the code does."""

from __future__ import annotations

import pkgutil
import re
from enum import IntFlag
from pathlib import Path

import msgspec
import pytest

import underlay as ul
import underlay.spark
import underlay.store.testing
from tests import architecture
from tests.project.test_errors import every_error
from underlay.change.files import settings
from underlay.cli import main
from underlay.errors import exit_code
from underlay.index.catalog import CatalogDelta, CatalogEntry
from underlay.index.entry import ColumnEntry, FileEntry, Flag
from underlay.index.root import Delta, Root
from underlay.pm.format.layout import LAYOUTS, ColumnFlag, Encoding, FooterFlag, HeaderFlag, RecordLayout, StatFlag

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_field_tables_are_those_of_the_code(layout: RecordLayout):
    assert layout.markdown() in (DOCS / "pm-format.md").read_text()


@pytest.mark.parametrize("flags", [HeaderFlag, FooterFlag, ColumnFlag, StatFlag, Encoding])
def test_flag_tables_are_those_of_the_code(flags: type[IntFlag]):
    rows = "".join(f"| {flag.value.bit_length() - 1} | {flag.name} |\n" for flag in flags)
    assert f"| bit | flag |\n|---|---|\n{rows}\n" in (DOCS / "pm-format.md").read_text()


def test_the_flags_of_a_chunk_are_those_of_the_code():
    rows = "".join(f"| {flag.value.bit_length() - 1} | {flag.name} |\n" for flag in Flag)
    assert f"| bit | flag |\n|---|---|\n{rows}\n" in (DOCS / "index-format.md").read_text()


@pytest.mark.parametrize(
    "record", [Root, Delta, FileEntry, ColumnEntry, CatalogEntry, CatalogDelta], ids=lambda record: record.__name__
)
def test_every_field_of_the_index_is_described(record: type[msgspec.Struct]):
    text = (DOCS / "index-format.md").read_text()
    for field in record.__struct_fields__:
        assert f"`{field}`" in text, field


def test_no_example_has_a_column_at_which_duckdb_takes_for_a_keyword():
    pages = [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("guide/*.md"), Path(main.HELP)]
    for page in pages:
        assert not re.search(r"\bat\s+timestamp\b|\b(year|month|day|hour|days)\(at\)", page.read_text()), page.name


def test_the_properties_of_a_table_are_those_of_the_code():
    table = re.search(r"\| property .*?\n\n", (DOCS / "tables.md").read_text(), re.DOTALL)
    assert table is not None
    assert table[0].strip() in settings.__doc__
    assert re.findall(r"^\| `([\w.]+)`", table[0], re.MULTILINE) == list(settings.KNOWN)


def test_every_error_stands_in_the_table_with_its_exit_code():
    text = (DOCS / "errors.md").read_text()
    for kind in every_error():
        assert f"| {exit_code(kind('x'))} | `{kind.__name__}` | `{kind.code}` |" in text
    assert text.count("| `") == len(every_error()) * 2


def test_links_in_the_documentation_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_architecture_page_lists_every_folder_with_its_docstring():
    assert architecture.described(architecture.PAGE.read_text()) == architecture.folder_list(), (
        "run python -m tests.architecture"
    )


def test_the_paths_of_a_query_and_of_a_commit_name_what_exists():
    _, paths = architecture.PAGE.read_text().split("## The path of a query")
    names = re.findall(r"`([a-z_]+(?:\.\w+){2,})`", paths)
    assert len(names) > 20
    for name in names:
        assert pkgutil.resolve_name(f"underlay.{name}") is not None, name


def test_the_modules_where_a_newcomer_is_told_to_look_exist():
    _, questions = architecture.PAGE.read_text().split("## Where to look")
    paths = re.findall(r"`([a-z_/]+\.py)`", questions)
    assert len(paths) > 20
    assert [path for path in paths if not (architecture.SOURCE / path).is_file()] == []


def test_every_rule_and_trap_that_is_cited_is_defined():
    defined = {
        *re.findall(r"^\| (R\d+) ", (DOCS / "commit-rules.md").read_text(), re.MULTILINE),
        *re.findall(r"^\| (T\d+) ", (DOCS / "traps.md").read_text(), re.MULTILINE),
    }
    assert defined == {f"R{i}" for i in range(1, 16)} | {f"T{i}" for i in range(1, 39)}
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    sources = [path for folder in ("src", "tests", "bench") for path in (ROOT / folder).rglob("*.py")]
    cited = {(path.name, name) for path in pages + sources for name in re.findall(r"\b[RT]\d{1,2}\b", path.read_text())}
    assert len(cited) > 20
    assert {(path, name) for path, name in cited if name not in defined} == set()


def test_every_public_name_is_in_the_api_reference():
    for module, page in ((ul, "underlay.md"), (ul.spark, "spark.md"), (ul.store.testing, "store-testing.md")):
        described = (DOCS / "reference" / page).read_text()
        homes = {home.rpartition(".")[2] for home in re.findall(r"^::: (\S+)", described, re.MULTILINE)}
        for name in set(module.__all__) - {"__version__", "errors", "UnderlayError"}:
            assert name in homes or module._HOMES[name].rpartition(".")[2] in homes, f"{page} lacks {name}"


def test_every_decision_is_listed():
    listed = re.findall(r"\]\((0\d+-.*?\.md)\)", (DOCS / "decisions" / "index.md").read_text())
    assert listed == sorted(page.name for page in (DOCS / "decisions").glob("0*.md"))

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.lakes import memory
from underlay.change.register.find_files import find_files, translate
from underlay.errors import InvalidRequest, NotFound
from underlay.scan.read.file_stores import FileStores
from underlay.store.local import LocalStore
from underlay.store.testing.counting import CountingStore

FILES = [
    "2024/01/a.parquet",
    "2024/01/b.parquet",
    "2024/02/a.parquet",
    "2024/02/readme.txt",
    "2024/_temporary/c.parquet",
    "2024/.hidden/d.parquet",
    "2024/02/_e.parquet",
    "2025/a b%20#.parquet",
    "2025/f.parq",
    "top.parquet",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return tmp_path / "data"


@pytest.fixture
def stores(tmp_path: Path) -> FileStores:
    return FileStores(LocalStore(tmp_path / "lake"))


def found(stores: FileStores, folder: Path, *patterns: str) -> list[str]:
    """Files as paths in the folder."""
    files = find_files([f"{folder}/{pattern}" for pattern in patterns], stores)
    return [f"/{file.place.key}".removeprefix(f"{folder}/") for file in files]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("top.parquet", ["top.parquet"]),
        ("*.parquet", ["top.parquet"]),
        ("2024/*/a.parquet", ["2024/01/a.parquet", "2024/02/a.parquet"]),
        ("2024/0?/*.parquet", ["2024/01/a.parquet", "2024/01/b.parquet", "2024/02/_e.parquet", "2024/02/a.parquet"]),
        ("2024/0[13]/*", ["2024/01/a.parquet", "2024/01/b.parquet"]),
        ("2024/0[!1]/a*", ["2024/02/a.parquet"]),
        ("**/a.parquet", ["2024/01/a.parquet", "2024/02/a.parquet"]),
        ("2024/**/b.parquet", ["2024/01/b.parquet"]),
        ("2025/a b%20#.parquet", ["2025/a b%20#.parquet"]),
    ],
)
def test_patterns_find_what_they_say(stores: FileStores, folder: Path, pattern: str, expected: list[str]):
    assert found(stores, folder, pattern) == expected


@pytest.mark.parametrize("name", ["2024", "2024/"])
def test_a_folder_is_all_visible_parquet_files_below_it(stores: FileStores, folder: Path, name: str):
    assert found(stores, folder, name) == ["2024/01/a.parquet", "2024/01/b.parquet", "2024/02/a.parquet"]


def test_a_folder_below_a_hidden_one_is_not_hidden_by_it(stores: FileStores, folder: Path):
    assert found(stores, folder, "2024/_temporary") == ["2024/_temporary/c.parquet"]


def test_files_come_once_in_the_order_of_patterns(stores: FileStores, folder: Path):
    assert found(stores, folder, "2024/02/a.parquet", "2024", "**/a.parquet") == [
        "2024/02/a.parquet",
        "2024/01/a.parquet",
        "2024/01/b.parquet",
    ]


@pytest.mark.parametrize("pattern", ["none*.parquet", "nowhere/*", "2024/02/readme/"])
def test_a_pattern_without_a_match_is_named(stores: FileStores, folder: Path, pattern: str):
    with pytest.raises(NotFound, match="no file matches") as raised:
        found(stores, folder, "2024", pattern)
    assert pattern in str(raised.value)


def test_an_empty_path_is_refused(stores: FileStores):
    with pytest.raises(InvalidRequest):
        find_files([""], stores)


def test_a_path_is_taken_from_the_working_folder(stores: FileStores, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder / "2024")
    assert [file.location for file in find_files(["01/*.parquet"], stores)] == [
        (folder / "2024/01/a.parquet").as_uri(),
        (folder / "2024/01/b.parquet").as_uri(),
    ]


def test_a_file_url_is_read_as_others_write_it(stores: FileStores, folder: Path):
    odd = folder / "2025" / "a b%20#.parquet"
    (file,) = find_files([odd.as_uri()], stores)
    assert f"/{file.place.key}" == str(odd)


def test_files_below_the_lake_are_named_within_it(folder: Path):
    stores = FileStores(LocalStore(folder))
    assert [file.location for file in find_files([f"{folder}/2024/01"], stores)] == [
        "./2024/01/a.parquet",
        "./2024/01/b.parquet",
    ]


def test_one_listing_of_the_folder_before_the_first_special_character(folder: Path):
    store = CountingStore(memory())
    for name in FILES:
        store.put(name, b"x")
    store.reset()
    found = find_files([f"{store.url}/2024/0[12]/a.parquet", f"{store.url}/top.parquet"], FileStores(store))
    assert [file.location for file in found] == ["./2024/01/a.parquet", "./2024/02/a.parquet", "./top.parquet"]
    assert [served.request.keys for served in store.log] == [("2024",)]


def test_links_and_dots_lead_to_the_real_files(stores: FileStores, folder: Path):
    (folder / "link").symlink_to(folder / "2024" / "01")
    (folder / "file.parquet").symlink_to(folder / "top.parquet")
    (folder / "2025" / "more").symlink_to(folder / "2024")
    real = ["2024/01/a.parquet", "2024/01/b.parquet"]
    assert found(stores, folder, "link/*.parquet") == real
    assert found(stores, folder, "link") == real
    assert found(stores, folder, "link/a.parquet", "2025/../2024/01/*", "li*/?.parquet") == real
    assert found(stores, folder, "2025/more/*/b.parquet") == ["2024/01/b.parquet"]
    assert found(stores, folder, "link/../02/a.parquet") == ["2024/02/a.parquet"]
    assert found(stores, folder, "file.parquet", "top.parquet", "*.parquet") == ["top.parquet"]


def test_a_folder_that_links_to_itself_ends(stores: FileStores, folder: Path):
    (folder / "2024" / "01" / "up").symlink_to(folder / "2024")
    assert found(stores, folder, "2024") == ["2024/01/a.parquet", "2024/01/b.parquet", "2024/02/a.parquet"]


def test_a_lake_behind_a_link_knows_its_own_files(folder: Path, tmp_path: Path):
    (tmp_path / "elsewhere").symlink_to(folder)
    stores = FileStores(LocalStore(tmp_path / "elsewhere"))
    for name in (folder, tmp_path / "elsewhere"):
        assert [file.location for file in find_files([f"{name}/top.parquet"], stores)] == ["./top.parquet"]


@pytest.mark.parametrize(
    ("pattern", "key", "is_match"),
    [
        ("a.b", "axb", False),
        ("a/**", "a/b/c", True),
        ("**/c", "c", True),
        ("a/**/c", "a/c", True),
        ("a*c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[]x", "[]x", True),
        ("[!a]x", "ax", False),
        ("[^]x", "^x", True),
        ("[!]x", "!x", True),
        ("[^a]x", "^x", True),
        ("[[]x", "[x", True),
        ("a[!b]c", "a/c", False),
        ("a[\\]b", "a\\b", True),
    ],
)
def test_a_pattern_is_matched_in_full(pattern: str, key: str, is_match: bool):
    assert bool(translate(pattern).fullmatch(key)) == is_match


def test_a_set_that_is_none_is_refused():
    with pytest.raises(InvalidRequest, match="invalid pattern"):
        translate("[z-a].parquet")


def test_a_folder_may_be_given_as_a_url(stores: FileStores, folder: Path):
    assert len(find_files([(folder / "2024").as_uri()], stores)) == 3


@pytest.mark.parametrize("name", ["a[1].parquet", "really?.parquet", "all*.parquet"])
def test_a_file_that_exists_is_no_pattern(stores: FileStores, folder: Path, name: str):
    (folder / name).write_bytes(b"x")
    (folder / "a1.parquet").write_bytes(b"x")
    (folder / "all of them.parquet").write_bytes(b"x")
    assert found(stores, folder, name) == [name]
    (file,) = find_files([(folder / name).as_uri()], stores)
    assert file.place.key.endswith(name)

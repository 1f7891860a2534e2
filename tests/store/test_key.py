from __future__ import annotations

import pytest

from underlay.errors import InvalidRequest
from underlay.store.key import check_folder, check_key, is_key


@pytest.mark.parametrize("key", ["a", "a/b", "_index/00000000000000000007.root", "é", ".hidden", "a..b", "x" * 255])
def test_good_keys_pass(key: str):
    assert check_key(key) == key
    assert is_key(key)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("", "empty"),
        ("/a", "empty segment"),
        ("a/", "empty segment"),
        ("a//b", "empty segment"),
        (".", "'.'"),
        ("a/../b", "'..'"),
        ("a\0b", "control"),
        ("a\x7f", "control"),
        ("a\x85b", "control"),
        ("a/.tmp-b/c", "temporary"),
        ("\ud800", "UTF-8"),
        ("x" * 256, "longer"),
        ("é" * 128, "longer"),
        ("/".join(["x" * 200] * 6), "longer"),
    ],
)
def test_bad_keys_say_what_is_wrong(key: str, problem: str):
    assert not is_key(key)
    with pytest.raises(InvalidRequest, match=problem):
        check_key(key)


def test_a_folder_may_end_with_a_slash_and_may_be_the_whole_store():
    assert check_folder("a/b/") == check_folder("a/b") == "a/b"
    assert check_folder("") == ""
    with pytest.raises(InvalidRequest):
        check_folder("a//")

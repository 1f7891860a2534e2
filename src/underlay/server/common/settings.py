"""A server's settings: which lake, what it may use, and what it allows each request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from underlay.server.common.hot_settings import HotSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What one request, one token and all requests together may use. `/v1/info` shows these limits."""

    sql_bytes: int = 256 << 10
    body_bytes: int = 16 << 20
    statement_seconds: float = 60.0
    most_statement_seconds: float = 3600.0
    wait_seconds: float = 60.0
    running: int = 4
    waiting: int = 128
    per_token: int = 100
    page_rows: int = 100_000
    memory_bytes: int = 1 << 30
    """The memory limit of each worker's engine."""
    spark_memory_bytes: int = 2 << 30
    """The memory limit of the Spark driver."""
    spark_from_bytes: int = 8 << 30
    """With `auto`, Spark runs queries whose plans read at least this much."""
    spill_bytes: int = 10 << 30
    stream_bytes: int = 64 << 30
    result_bytes: int = 4 << 30
    """The size limit of one kept result."""
    spool_bytes: int = 20 << 30
    """The size limit of all kept results together."""
    kept_seconds: float = 600.0
    """How long a result is kept that nobody fetches."""
    most_kept_seconds: float = 3600.0
    kept_statements: int = 1000
    cancel_seconds: float = 1.5
    """A cancelled worker that does not stop within this time is killed."""
    idle_write_seconds: float = 30.0
    """A client that reads nothing for this long is considered gone."""
    drain_seconds: float = 30.0
    connections: int = 1000
    head_seconds: float = 15.0
    """The time limit from a request's first byte to the end of its headers."""
    body_seconds: float = 30.0
    """The time limit of a request's body; each kilobyte adds a second."""

    def as_json(self) -> dict[str, object]:
        """By name."""
        return asdict(self)


def audit_paths(settings: ServerSettings) -> list[Path]:
    """The files of the audit log, oldest first. Without a configured log, temporary files of this server."""
    if settings.audit is not None:
        return [settings.audit.absolute()]
    own = settings.spool / "audit.ndjson"
    return [own.with_suffix(".old"), own]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """One server. `tokens` is None for anonymous access, which is only allowed on a loopback address."""

    lake: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    registry: str | None = field(default=None, repr=False)
    host: str = "127.0.0.1"
    port: int = 8080
    is_writable: bool = False
    tokens: Path | None = None
    public_url: str | None = None
    root_path: str = ""
    flight: tuple[str, int] | None = None
    """Where Flight SQL is served: an address, and a port, of which 0 is any free one."""
    log_format: str = "text"
    """text, or json: then each request is logged, too."""
    spool: Path
    audit: Path | None = None
    engine: str = "duckdb"
    """What runs statements that do not ask for one: auto, duckdb (then there is no other) or spark."""
    master: str = "local[*]"
    """Of Spark."""
    spark_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    threads: int | None = None
    """Threads of each worker's engine; None for a fair share of the cores."""
    certificate: Path | None = None
    certificate_key: Path | None = None
    limits: ServerLimits = field(default_factory=ServerLimits)
    hot: HotSettings | None = None
    """Hot partitions: queries see their rows, and a writable server takes rows for them."""

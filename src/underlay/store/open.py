"""From a URL to its store.

    data/lake, ~/lake, /srv/lake, file:///lake    a local directory
    s3://bucket/path, s3a://…                     S3 and compatible stores (option `endpoint`)
    gs://bucket/path                              Google Cloud Storage
    az://container/path, abfs[s]://…              Azure Blob Storage
    memory://name                                 this process's memory; the same name is the same store

Credentials come from the options, else from the variables that these platforms' own tools read (AWS_*, GOOGLE_*,
AZURE_*), else from the files that these tools keep (see `defaults`), else from the machine's identity service. They are
never part of the URL, and a URL that holds some is refused. An endpoint that begins with http:// allows plain HTTP;
AWS_ALLOW_HTTP and its like are not needed. Paths of file:// are quoted, `%20` for a space; all others are keys as they
are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, unquote, urlsplit

from obstore.exceptions import BaseError, UnknownConfigurationKeyError
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store

from underlay.errors import InvalidRequest
from underlay.runtime.locks import ProcessLock
from underlay.runtime.posix import need_posix
from underlay.store.defaults import PROFILE, AwsDefaults, aws_defaults, azure_defaults
from underlay.store.remote import RemoteStore
from underlay.store.store import Store

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, ObjectStore, RetryConfig, S3Config, S3Credential

Option = str | bool | int
"""The value of an option."""


_SECRET_PARTS = ("key", "secret", "token", "password", "credential", "sas", "auth", "bearer")


def is_secret(name: str, value: object = "") -> bool:
    """Whether an option may be a credential: by its name, or as a URL that has a user in it."""
    return any(part in name.lower() for part in _SECRET_PARTS) or "@" in str(value)


class SecretText(str):
    """Text to use like any other, but neither its own `repr` nor that of an object that holds it shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class StoreOptions(dict[str, str]):
    """Options of a store, to keep. Neither their `repr` nor that of a copy shows what may be a credential."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(
            (name, SecretText(value) if isinstance(value, str) and is_secret(name, value) else value)
            for name, value in options.items()
        )

    def __repr__(self) -> str:
        return f"StoreOptions({dict(self)!r})"


_CLIENT_OPTIONS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "http1_only",
    "http2_keep_alive_interval",
    "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "read_timeout",
    "root_certificate",
    "timeout",
    "user_agent",
}
"""Options of the connection; durations are text such as "5s". All others are the platform's own, as obstore names
them: `endpoint`, `region`, `access_key_id`, `secret_access_key`, `virtual_hosted_style_request`, `account_name` …"""

_ENDPOINT_OPTIONS = ("endpoint", "aws_endpoint", "aws_endpoint_url_s3", "azure_storage_endpoint", "base_url")
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_STORAGE_ENDPOINT")

_MAY_HAVE_LINES = ("certificate", "service_account_key")
"""How the names of options end whose values are not sent in a header, where obstore panics over a line break."""

_DEFAULT_CLIENT = {"connect_timeout": "5s", "read_timeout": "30s", "timeout": "300s"}
"""A request may take long when it moves much, but a connection that is silent for long is dead."""
_MAX_RETRIES = 5
_RETRY_TIMEOUT = timedelta(seconds=60)
_MAX_BACKOFF = timedelta(seconds=5)

_S3 = ("s3", "s3a")
_GCS = ("gs",)
_AZURE = ("az", "abfs", "abfss")

_memories: dict[str, MemoryStore] = {}
_memories_lock = ProcessLock()


def open_store(url: str | os.PathLike[str], options: Mapping[str, Option] | None = None) -> Store:
    """The store at `url`. Makes no request and no directory. InvalidRequest when URL or options are not understood."""
    text = os.fspath(url)
    scheme, separator, rest = text.partition("://")
    if not separator:
        _refuse_options(options, text)
        return _open_local(os.path.expanduser(text))
    if scheme == "file":
        _refuse_options(options, text)
        return _open_local(_path_of(text))
    if scheme == "memory":
        _refuse_options(options, text)
        return RemoteStore(_memory(rest.strip("/")), f"memory://{rest.strip('/')}")
    if scheme not in {*_S3, *_GCS, *_AZURE}:
        known = ", ".join(["a path", "file", *_S3, *_GCS, *_AZURE, "memory"])
        raise InvalidRequest(f"unknown URL scheme {scheme}://", expected=known)
    return _open_bucket(scheme, text, options or {})


def _open_local(path: str) -> Store:
    need_posix("lakes and files on a local disk")
    from underlay.store.local import LocalStore  # after the check: its modules need POSIX

    return LocalStore(path)


def _open_bucket(scheme: str, url: str, options: Mapping[str, Option]) -> RemoteStore:
    _refuse_secrets(scheme, url)
    for name, value in options.items():
        if isinstance(value, str) and not value.isprintable() and not name.endswith(_MAY_HAVE_LINES):
            raise InvalidRequest(f"the option {name} holds a character that cannot be sent", place=url)
    client = _DEFAULT_CLIENT | {name: value for name, value in options.items() if name in _CLIENT_OPTIONS}
    known = {*_CLIENT_OPTIONS, "max_retries", *([PROFILE] if scheme in _S3 else [])}
    platform = {name: value for name, value in options.items() if name not in known}
    defaults = AwsDefaults(options={})
    if scheme in _S3:
        defaults = aws_defaults(options, os.environ)
        platform = {**defaults.options, **platform}
    elif scheme in _AZURE:
        platform = {**azure_defaults(options, os.environ), **platform}
    endpoints = [platform.get(name) for name in _ENDPOINT_OPTIONS] + [os.environ.get(v) for v in _ENDPOINT_VARIABLES]
    if any(str(endpoint).startswith("http://") for endpoint in endpoints):
        client.setdefault("allow_http", True)
    place = url.rstrip("/")
    try:
        retry: RetryConfig = {
            "max_retries": int(options.get("max_retries", _MAX_RETRIES)),
            "retry_timeout": _RETRY_TIMEOUT,
            "backoff": {"max_backoff": _MAX_BACKOFF},
        }
        quoted = quote(place, safe=":/@")  # obstore unquotes it
        connected = _connect(scheme, quoted, platform, cast("ClientConfig", client), retry, defaults.provider)
        return RemoteStore(connected, place)
    except UnknownConfigurationKeyError:
        problem = f"one of these options is not known here: {', '.join(sorted(options))}"
    except (BaseError, ValueError, TypeError):
        problem = "the URL and the options do not describe a store; an account, endpoint or key file may be missing"
    # Raised here, so that obstore's text, which may quote option values, is not its context.
    raise InvalidRequest(problem, place=url, hint="Options have obstore's names, such as endpoint and region.")


def _connect(
    scheme: str,
    url: str,
    platform: dict[str, Option],
    client: ClientConfig,
    retry: RetryConfig,
    provider: Callable[[], S3Credential] | None,
) -> ObjectStore:
    if scheme in _S3:
        return S3Store.from_url(
            url,
            config=cast("S3Config", platform),
            client_options=client,
            retry_config=retry,
            credential_provider=provider,
        )
    if scheme in _GCS:
        return GCSStore.from_url(url, config=cast("GCSConfig", platform), client_options=client, retry_config=retry)
    return AzureStore.from_url(url, config=cast("AzureConfig", platform), client_options=client, retry_config=retry)


def _refuse_secrets(scheme: str, url: str) -> None:
    """Refuse a URL that holds more than place names, without repeating it. `abfs://container@account…` is one."""
    parts = urlsplit(url)
    is_account = scheme in _AZURE and ":" not in parts.netloc
    if ("@" in parts.netloc and not is_account) or parts.query or parts.fragment:
        raise InvalidRequest(
            f"a {scheme}:// URL must hold only a bucket and a path",
            hint="Give credentials and settings in the environment or as options; they are then never shown.",
        )


def _refuse_options(options: Mapping[str, Option] | None, url: str) -> None:
    if options:
        raise InvalidRequest(f"this store has no options: {', '.join(sorted(options))}", place=url)


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or not parts.path:
        raise InvalidRequest("a file URL names a path on this machine", place=url, expected="file:///path")
    return unquote(parts.path)


def _memory(name: str) -> MemoryStore:
    with _memories_lock:
        return _memories.setdefault(name, MemoryStore())

"""Opens stores that obstore reaches: buckets and containers by URL and options, and this process's memory.

An endpoint that begins with http:// allows plain HTTP; AWS_ALLOW_HTTP and its like are not needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, urlsplit

from obstore.exceptions import BaseError, UnknownConfigurationKeyError
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store

from underlay.errors import InvalidRequest
from underlay.runtime.locks import ProcessLock
from underlay.store.defaults import PROFILE, AwsDefaults, aws_defaults, azure_defaults
from underlay.store.remote import RemoteStore

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, ObjectStore, RetryConfig, S3Config, S3Credential

    from underlay.store.open import Option

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


def open_remote(url: str, options: Mapping[str, Option]) -> RemoteStore:
    """The store at a URL. Raises InvalidRequest when URL or options are not understood."""
    scheme, _, rest = url.partition("://")
    if scheme in {*_S3, *_GCS, *_AZURE}:
        return _open_bucket(scheme, url, options)
    if scheme != "memory":
        known = ", ".join(["a path", "file", *_S3, *_GCS, *_AZURE, "memory"])
        raise InvalidRequest(f"unknown URL scheme {scheme}://", expected=known)
    if options:
        raise InvalidRequest(f"this store has no options: {', '.join(sorted(options))}", place=url)
    name = rest.strip("/")
    with _memories_lock:
        return RemoteStore(_memories.setdefault(name, MemoryStore()), f"memory://{name}")


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

"""Tells whether Spark's JVM can read a store itself, and configures it.

`s3://bucket` is `s3a://bucket` to Hadoop, from its jar hadoop-aws. The lake's options, and the variables AWS_… that
obstore reads, become settings of that one bucket, so that two lakes do not mix:

| option of the store | `fs.s3a.bucket.<bucket>.…` |
|---|---|
| `access_key_id`, `secret_access_key` | `access.key`, `secret.key` |
| `session_token` | `session.token` |
| `skip_signature` | `aws.credentials.provider`: no credentials |
| none of these | `aws.credentials.provider`: the AWS SDK's own chain, unless the session names another |
| `endpoint` | `endpoint`, `connection.ssl.enabled` |
| `region`, else us-east-1 | `endpoint.region` |
| `virtual_hosted_style_request` | `path.style.access`: the opposite |
| `request_payer` | `requester.pays.enabled` |

They are in Hadoop's configuration, which Spark neither lists nor logs. A bucket's file system is opened once in a JVM:
later changes of settings have no effect. Settings for gs:// and abfss:// are left to the user, as
`spark.hadoop.fs.gs.…` and `spark.hadoop.fs.azure.…`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from underlay.errors import Unsupported
from underlay.parquet.write.writer import CodecName
from underlay.spark.jvm.gateway import Gateway, JavaObject, call, gateway_of, java_session
from underlay.spark.jvm.hadoop_path import hadoop_scheme

_S3A = "s3a"
_FILE_SYSTEM = "org.apache.hadoop.fs.FileSystem"
_STRINGS = "org.apache.hadoop.util.StringUtils"
_PACKAGES = {
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector in a version for Hadoop {hadoop}",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
}
_PROVIDER = "aws.credentials.provider"
_ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
_KEYS = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_SESSION_KEYS = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_HADOOPS_OWN = "core-default.xml"
_SAME = {"endpoint_url": "endpoint", "token": "session_token"}
_TRUE = ("1", "true", "on", "yes", "y", "requester")
"""Texts that obstore reads as true."""
_DEFAULT_REGION = "us-east-1"
"""obstore's default region."""

_CODEC_CLASSES: dict[CodecName, str] = {"brotli": "org.apache.hadoop.io.compress.BrotliCodec"}
"""Classes that the JVM needs for codecs that not every Spark has."""
_reasons: dict[tuple[Gateway, str], str | None] = {}


def why_not_native(spark: SparkSession, url: str) -> str | None:
    """Why a session's JVM cannot read the store of a URL; None when it has a file system for it. Asks only once."""
    try:
        scheme = hadoop_scheme(url)
    except Unsupported as error:
        return str(error)
    gateway = gateway_of(spark)
    if (gateway, scheme) not in _reasons:
        _reasons[gateway, scheme] = _missing(spark, scheme)
    return _reasons[gateway, scheme]


def has_codec(spark: SparkSession, codec: CodecName) -> bool:
    """Whether a session's JVM can read files with this compression."""
    needed = _CODEC_CLASSES.get(codec)
    return needed is None or call(_configuration(spark), "getClassByNameOrNull", needed) is not None


def configure(spark: SparkSession, url: str, options: Mapping[str, str]) -> None:
    """Configure the JVM to reach the store of a URL like our store that was opened with these options."""
    if urlsplit(url).scheme not in ("s3", _S3A):
        return
    configuration, bucket = _configuration(spark), urlsplit(url).netloc
    is_named = _is_named(gateway_of(spark), configuration, f"fs.s3a.{_PROVIDER}")
    for name, value in s3a_settings(bucket, options, os.environ).items():
        full = f"fs.s3a.bucket.{bucket}.{name}"
        if value is None or (value == _CHAIN and is_named):
            call(configuration, "unset", full)
        else:
            call(configuration, "set", full, value)


def s3a_settings(bucket: str, options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str | None]:
    """The settings of a bucket, by their names after `fs.s3a.bucket.<bucket>.`; None means not set."""
    given = {_known_as(name): value for name, value in environment.items() if name.startswith("AWS_")}
    given |= {_known_as(name): str(value) for name, value in options.items()}
    is_virtual = _is_true(given, "virtual_hosted_style_request")
    endpoint = given.get("endpoint_url_s3") or given.get("endpoint")
    if endpoint is not None and is_virtual:  # obstore wants the bucket in the endpoint, S3A adds it
        endpoint = endpoint.replace(f"://{bucket}.", "://", 1)
    return {
        **_credentials(given),
        "endpoint": endpoint,
        "connection.ssl.enabled": _text(not (endpoint or "").startswith("http://")),
        "endpoint.region": given.get("region") or given.get("default_region") or _DEFAULT_REGION,
        "path.style.access": _text(not is_virtual),
        "requester.pays.enabled": "true" if _is_true(given, "request_payer") else None,
    }


def _credentials(given: Mapping[str, str]) -> dict[str, str | None]:
    key, secret, token = (given.get(name) for name in ("access_key_id", "secret_access_key", "session_token"))
    has_keys = bool(key and secret) and not _is_true(given, "skip_signature")
    if has_keys:
        provider = _SESSION_KEYS if token else _KEYS
    else:
        provider = _ANONYMOUS if _is_true(given, "skip_signature") else _CHAIN
    return {
        _PROVIDER: provider,
        "access.key": key if has_keys else None,
        "secret.key": secret if has_keys else None,
        "session.token": (token or None) if has_keys else None,
    }


def _known_as(name: str) -> str:
    """The name of an option or variable without its prefix; synonyms get one name."""
    bare = name.lower().removeprefix("aws_")
    return _SAME.get(bare, bare)


def _is_true(given: Mapping[str, str], name: str) -> bool:
    return given.get(name, "").lower() in _TRUE


def _text(value: bool) -> str:
    return "true" if value else "false"


def _is_named(gateway: Gateway, configuration: JavaObject, name: str) -> bool:
    """Whether the user made a setting, rather than Hadoop's defaults."""
    sources = call(configuration, "getPropertySources", name)
    return sources is not None and str(gateway.static(_STRINGS, "arrayToString", sources)) != _HADOOPS_OWN


def _missing(spark: SparkSession, scheme: str) -> str | None:
    """What the JVM lacks to read a scheme, and how to get it."""
    gateway = gateway_of(spark)
    problem = gateway.failure(_FILE_SYSTEM, "getFileSystemClass", scheme, _configuration(spark))
    if problem is None:
        return None
    hadoop = str(gateway.static("org.apache.hadoop.util.VersionInfo", "getVersion"))
    package = _PACKAGES.get(scheme, "").format(hadoop=hadoop)
    return f"Spark has no file system for {scheme}:// ({problem}); add by spark.jars.packages {package}"


def _configuration(spark: SparkSession) -> JavaObject:
    """Hadoop's configuration of the session's cluster, which every scan takes along to its tasks."""
    return call(call(java_session(spark), "sparkContext"), "hadoopConfiguration")

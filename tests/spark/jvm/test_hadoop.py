from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from underlay.errors import Unsupported
from underlay.spark.jvm.gateway import JavaObject, call, java_session
from underlay.spark.jvm.hadoop import configure, s3a_settings, why_not_native
from underlay.spark.jvm.hadoop_path import hadoop_folder, hadoop_path

pytestmark = pytest.mark.local_only

KEYS = {"access_key_id": "who", "secret_access_key": "hush"}
PROVIDER = "aws.credentials.provider"


@pytest.fixture
def configuration(spark: SparkSession) -> Iterator[JavaObject]:
    """Hadoop's configuration of the session, left as it was."""
    found = call(call(java_session(spark), "sparkContext"), "hadoopConfiguration")
    yield found
    for bucket in ("one", "two"):
        for name in (*s3a_settings(bucket, {}, {}), PROVIDER):
            call(found, "unset", f"fs.s3a.bucket.{bucket}.{name}")


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        (KEYS, {}, {PROVIDER: "Simple", "access.key": "who", "secret.key": "hush", "session.token": None}),
        (KEYS | {"aws_session_token": "t"}, {}, {PROVIDER: "Temporary", "session.token": "t"}),
        (KEYS | {"skip_signature": "true"}, {}, {PROVIDER: "Anonymous", "access.key": None, "secret.key": None}),
        ({}, {"AWS_ACCESS_KEY_ID": "e", "AWS_SECRET_ACCESS_KEY": "s", "AWS_TOKEN": "t"}, {"session.token": "t"}),
        (KEYS, {"AWS_ACCESS_KEY_ID": "e"}, {"access.key": "who"}),
        ({}, {"AWS_PROFILE": "mine"}, {PROVIDER: "DefaultCredentialsProvider", "access.key": None}),
        ({}, {}, {"endpoint": None, "endpoint.region": "us-east-1", "connection.ssl.enabled": "true"}),
        ({"endpoint": "http://a:1"}, {}, {"endpoint": "http://a:1", "connection.ssl.enabled": "false"}),
        ({"endpoint": "https://a"}, {"AWS_ENDPOINT_URL": "https://b"}, {"endpoint": "https://a"}),
        ({"endpoint": "https://a"}, {"AWS_ENDPOINT_URL_S3": "https://b"}, {"endpoint": "https://b"}),
        ({"region": "eu-west-1"}, {"AWS_REGION": "eu-west-2"}, {"endpoint.region": "eu-west-1"}),
        ({}, {"AWS_DEFAULT_REGION": "eu-west-3"}, {"endpoint.region": "eu-west-3", "path.style.access": "true"}),
        (
            {"endpoint": "https://b.host:2", "virtual_hosted_style_request": "true"},
            {},
            {"endpoint": "https://host:2", "path.style.access": "false"},
        ),
        ({"request_payer": "requester"}, {}, {"requester.pays.enabled": "true"}),
    ],
)
def test_options_and_variables_become_settings_of_the_bucket(
    options: dict[str, str], environment: dict[str, str], expected: dict[str, str | None]
):
    found = s3a_settings("b", options, environment)
    for name, value in expected.items():
        assert value in found[name] if name == PROVIDER and value else found[name] == value


def test_settings_of_two_buckets_do_not_mix_and_are_shown_nowhere(spark: SparkSession, configuration: JavaObject):
    configure(spark, "s3://one/lake", KEYS | {"endpoint": "http://one:1"})
    configure(spark, "s3a://two/lake", {"access_key_id": "other", "secret_access_key": "x", "region": "eu-west-1"})
    get = lambda name: call(configuration, "get", f"fs.s3a.bucket.{name}")  # noqa: E731  # shorter
    assert [get("one.access.key"), get("one.secret.key"), get("one.endpoint")] == ["who", "hush", "http://one:1"]
    assert [get("two.access.key"), get("two.endpoint"), get("two.endpoint.region")] == ["other", None, "eu-west-1"]
    configure(spark, "s3://one/lake", {"skip_signature": "true"})
    assert [get("one.access.key"), get("one.secret.key"), get("one.endpoint")] == [None] * 3
    assert "hush" not in str(spark.sparkContext.getConf().getAll()) + str(spark.sql("set -v").collect())


def test_own_choice_of_a_credentials_provider_stands(spark: SparkSession, configuration: JavaObject):
    own = f"fs.s3a.{PROVIDER}"
    before = call(configuration, "get", own)
    configure(spark, "s3://one/lake", {"region": "eu-west-1"})
    assert str(call(configuration, "get", f"fs.s3a.bucket.one.{PROVIDER}")).endswith("DefaultCredentialsProvider")
    call(configuration, "set", own, "com.example.Mine")
    try:
        configure(spark, "s3://one/lake", {"region": "eu-west-1"})
        assert call(configuration, "get", f"fs.s3a.bucket.one.{PROVIDER}") is None
    finally:
        call(configuration, "set", own, before)


def test_why_a_store_is_not_read_by_spark_says_what_to_do(spark: SparkSession):
    assert why_not_native(spark, "file:///srv/lake") is None
    assert "org.apache.hadoop:hadoop-aws:3" in str(why_not_native(spark, "s3://bucket/lake"))
    assert "gcs-connector" in str(why_not_native(spark, "gs://bucket"))
    assert "abfss://container@account" in str(why_not_native(spark, "az://container/lake"))
    assert "memory://x" in str(why_not_native(spark, "memory://x"))


def test_places_are_named_as_hadoop_names_them():
    assert hadoop_folder("s3://bucket/my%20lake", "a/b") == "s3a://bucket/my%20lake/a/b"
    assert hadoop_folder("file:///srv/my%20lake/", "a") == "file:///srv/my lake/a"
    assert hadoop_path("abfss://c@account.dfs.core.windows.net/x") == "abfss://c@account.dfs.core.windows.net/x"
    with pytest.raises(Unsupported, match="account"):
        hadoop_path("abfs://container/x")

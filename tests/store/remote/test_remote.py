"""Over the wire: what becomes of a create when requests and responses are lost, and what errors say."""

from __future__ import annotations

import logging
import os
import pickle
import traceback
from collections.abc import Callable

import pytest

from tests.store.proxy import Action, Answer, DropRequest, DropResponse, Forward, ForwardWithout, Seen, Silence, proxy
from tests.store.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, free_ports
from underlay.errors import NotFound, Unavailable, UnderlayError, Unsupported
from underlay.store.open import Option, open_store
from underlay.store.probe import probe_store
from underlay.store.store import Outcome, Store
from underlay.values.ranges import ByteRange

CONFLICT = Answer(409, "<Error><Code>ConditionalRequestConflict</Code></Error>")
BUSY = Answer(503, "<Error><Code>SlowDown</Code></Error>")
DENIED = Answer(403, "<Error><Code>AccessDenied</Code></Error>")
NO_BUCKET = Answer(404, "<Error><Code>NoSuchBucket</Code></Error>")


@pytest.mark.parametrize(
    ("actions", "outcome", "is_there"),
    [
        ([Forward()], Outcome.DONE, True),
        ([DropRequest()], Outcome.UNKNOWN, False),
        ([DropResponse()], Outcome.UNKNOWN, True),
        ([BUSY], Outcome.UNKNOWN, False),
        ([Answer(500)], Outcome.UNKNOWN, False),
        ([Answer(429)], Outcome.UNKNOWN, False),
        ([Answer(400, "<Error><Code>RequestTimeout</Code></Error>")], Outcome.UNKNOWN, False),
        ([CONFLICT], Outcome.UNKNOWN, False),
        ([Answer(412)], Outcome.REFUSED, False),
    ],
    ids=["ok", "request lost", "response lost", "503", "500", "429", "timeout", "409", "412"],
)
def test_a_create_without_retries(seaweedfs: S3Server, actions: list[Action], outcome: Outcome, is_there: bool):
    direct = seaweedfs.open()
    with proxy(seaweedfs.endpoint, actions) as front:
        store = seaweedfs.through(front.endpoint).open(direct.url.rpartition("/")[2])
        assert store.create("root", b"mine") is outcome
        assert len(front.seen) == 1
    assert (direct.head("root") is not None) is is_there


@pytest.mark.parametrize(
    ("actions", "outcome", "is_there"),
    [
        ([BUSY, Forward()], Outcome.DONE, True),
        ([DropRequest(), Forward()], Outcome.DONE, True),
        ([DropResponse(), Forward()], Outcome.REFUSED, True),
        ([DropResponse(), DropRequest()], Outcome.UNKNOWN, True),
        ([DropResponse(), DENIED], Outcome.UNKNOWN, True),
        ([DropResponse(), NO_BUCKET], Outcome.UNKNOWN, True),
    ],
    ids=["503, ok", "lost, ok", "response lost, own refusal", "lost twice", "response lost, 403", "response lost, 404"],
)
def test_a_create_that_is_repeated_once(seaweedfs: S3Server, actions: list[Action], outcome: Outcome, is_there: bool):
    direct = seaweedfs.open()
    with proxy(seaweedfs.endpoint, actions) as front:
        store = seaweedfs.through(front.endpoint).open(direct.url.rpartition("/")[2], max_retries=1)
        assert store.create("root", b"mine") is outcome
        assert len(front.seen) == 2
    assert (direct.head("root") is not None) is is_there


def test_a_create_that_is_never_answered_is_unknown_and_not_repeated(seaweedfs: S3Server):
    direct = seaweedfs.open()
    with proxy(seaweedfs.endpoint, [Silence()]) as front:
        store = seaweedfs.through(front.endpoint).open(
            direct.url.rpartition("/")[2], max_retries=3, timeout="3s", read_timeout="3s"
        )
        assert store.create("root", b"mine") is Outcome.UNKNOWN
        assert front.passed_on.wait(240)
        assert len(front.seen) == 1
    assert bytes(direct.get("root")[0]) == b"mine"


def test_a_create_at_a_port_where_nobody_listens_is_unknown():
    (port,) = free_ports(1)
    assert S3Server(f"http://127.0.0.1:{port}").open().create("root", b"x") is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (DENIED, Unavailable),
        (Answer(401), Unavailable),
        (NO_BUCKET, Unavailable),
        (Answer(400, "<Error><Code>ExpiredToken</Code></Error>"), Unavailable),
        (Answer(501, "<Error><Code>NotImplemented</Code></Error>"), Unsupported),
    ],
    ids=["403", "401", "404", "expired", "501"],
)
def test_a_create_that_can_never_succeed_raises(seaweedfs: S3Server, answer: Answer, error: type[UnderlayError]):
    with proxy(seaweedfs.endpoint, [answer]) as front, pytest.raises(error):
        seaweedfs.through(front.endpoint).open().create("root", b"mine")


def test_the_probe_refuses_a_store_behind_something_that_drops_the_condition(moto: S3Server):
    with proxy(moto.endpoint, lambda _: ForwardWithout("If-None-Match")) as front:
        store = moto.through(front.endpoint).open()
        with pytest.raises(Unsupported, match="overwrote an object"):
            probe_store(store)
        assert list(store.list_objects()) == []


def test_ranges_are_one_request_each_after_joining_and_carry_the_etag(moto: S3Server):
    with proxy(moto.endpoint, []) as front:
        store = moto.through(front.endpoint).open()
        store.put("a", bytes(1000))
        etag = store.get("a")[1].etag
        for if_match in (None, etag):
            front.seen.clear()
            store.get_ranges(
                "a", [ByteRange(0, 10), ByteRange(20, 30), ByteRange(900, 910)], if_match=if_match, gap_bytes=10
            )
            headers = [{name.lower(): value for name, value in seen[2].items()} for seen in front.seen]
            assert sorted(header["range"] for header in headers) == ["bytes=0-29", "bytes=900-909"]
            assert {header.get("if-match") for header in headers} == {if_match}


def test_a_tail_is_one_request(moto: S3Server):
    with proxy(moto.endpoint, []) as front:
        store = moto.through(front.endpoint).open()
        store.put("a", b"hello")
        front.seen.clear()
        store.get_tail("a", 2)
        assert [(method, headers.get("range")) for method, _, headers in front.seen] == [("GET", "bytes=-2")]


def conditional_requests(store: Store) -> list[Callable[[], object]]:
    return [
        lambda: store.get("a", if_match='"x"'),
        lambda: store.get_ranges("a", [ByteRange(0, 1), ByteRange(5, 6)], if_match='"x"', gap_bytes=0),
    ]


def every_request(store: Store) -> list[Callable[[], object]]:
    return [
        lambda: store.create("a", b"x"),
        lambda: store.put("a", b"x"),
        lambda: store.get("a"),
        lambda: store.get_ranges("a", [ByteRange(0, 1)]),
        lambda: store.get_tail("a", 1),
        lambda: list(store.list_objects()),
        lambda: store.list_folders(),
        lambda: store.delete(["a"]),
    ]


@pytest.mark.parametrize("server", ["seaweedfs", "moto"])
def test_a_missing_bucket_is_never_a_missing_object(server: str, request: pytest.FixtureRequest):
    store = request.getfixturevalue(server).open(bucket="no-such-bucket")
    # SeaweedFS answers a conditional read in a missing bucket with NoSuchKey.
    for call in every_request(store) + (conditional_requests(store) if server == "moto" else []):
        with pytest.raises(Unavailable, match="bucket or container does not exist"):
            call()


@pytest.mark.parametrize(
    "wrong",
    [{"secret_access_key": "not-the-secret-of-it"}, {"access_key_id": "AKIDSOMEBODYELSE"}],
    ids=["secret", "key"],
)
def test_wrong_credentials_are_named_but_not_shown(
    seaweedfs: S3Server, wrong: dict[str, Option], caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    store = seaweedfs.open(**wrong)
    shown = [repr(store), str(store), store.url]
    for call in [*every_request(store), *conditional_requests(store), lambda: store.head("a")]:
        with pytest.raises(Unavailable, match="access denied") as caught:
            call()
        shown += [repr(caught.value), str(caught.value), *traceback.format_exception(caught.value)]
        assert caught.value.__context__ is None
    for secret in [SECRET_KEY, ACCESS_KEY, *map(str, wrong.values())]:
        assert secret not in "".join(shown)
        assert secret not in caplog.text


def test_a_store_that_does_not_answer_is_unavailable():
    (port,) = free_ports(1)
    store = S3Server(f"http://127.0.0.1:{port}").open()
    for call in [*every_request(store)[1:], *conditional_requests(store), lambda: store.head("a")]:
        with pytest.raises(Unavailable, match="Connect"):
            call()


def test_reads_are_repeated_after_a_server_error(moto: S3Server):
    moto.open("again").put("a", b"hello")
    answers: list[Action] = [BUSY, DropResponse()]
    with proxy(moto.endpoint, lambda _: answers.pop(0) if answers else Forward()) as front:
        store = moto.through(front.endpoint).open("again", max_retries=2)
        assert bytes(store.get("a")[0]) == b"hello"
        assert len(front.seen) == 3


def test_credentials_come_from_the_environment(seaweedfs: S3Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_ENDPOINT_URL", seaweedfs.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    store = open_store(f"s3://{BUCKET}/environment")
    store.put("a", b"hello")
    assert bytes(seaweedfs.open("environment").get("a")[0]) == b"hello"


def test_a_store_crosses_processes(moto: S3Server):
    store = moto.open()
    store.put("a", b"hello")
    assert bytes(pickle.loads(pickle.dumps(store)).get("a")[0]) == b"hello"


AZURE: dict[str, Option] = {"account_name": "acc", "account_key": "c2VjcmV0LW9mLXRoZS10ZXN0cw=="}


def azure(endpoint: str) -> Store:
    return open_store("az://lake/x", {**AZURE, "endpoint": endpoint, "max_retries": 0})


def gcs(endpoint: str) -> Store:
    return open_store(
        "gs://lake/x",
        {"base_url": endpoint, "bearer_token": "token-of-the-tests", "max_retries": 0},
    )


@pytest.mark.parametrize(
    ("connect", "answer", "outcome"),
    [
        (azure, Answer(201, headers={"ETag": '"1"', "Last-Modified": "x"}), Outcome.DONE),
        (azure, Answer(409, "<Error><Code>BlobAlreadyExists</Code></Error>"), Outcome.REFUSED),
        (azure, Answer(409, "<Error><Code>LeaseIdMissing</Code></Error>"), Outcome.UNKNOWN),
        (azure, Answer(412, "<Error><Code>ConditionNotMet</Code></Error>"), Outcome.REFUSED),
        (azure, Answer(503), Outcome.UNKNOWN),
        (gcs, Answer(200, headers={"ETag": '"1"'}), Outcome.DONE),
        (gcs, Answer(412, "<Error><Code>PreconditionFailed</Code></Error>"), Outcome.REFUSED),
        (gcs, Answer(409), Outcome.UNKNOWN),
        (gcs, Answer(503), Outcome.UNKNOWN),
    ],
)
def test_azure_and_gcs_answers_are_understood(connect: Callable[[str], Store], answer: Answer, outcome: Outcome):
    with proxy("http://127.0.0.1:1", lambda _: answer) as front:
        assert connect(front.endpoint).create("root", b"x") is outcome
        headers = {name.lower(): value for name, value in front.seen[0][2].items()}
        assert headers.get("if-none-match") == "*" or headers.get("x-goog-if-generation-match") == "0"


def test_azure_has_no_suffix_ranges_so_the_tail_takes_a_head_and_a_range():
    described = {"ETag": '"7"', "Last-Modified": "Sun, 15 Nov 2026 23:51:20 GMT"}

    def choose(seen: Seen) -> Action:
        if seen[0] == "HEAD":
            return Answer(200, headers={**described, "Content-Length": "5"})
        return Answer(206, "lo", {**described, "Content-Range": "bytes 3-4/5"})

    with proxy("http://127.0.0.1:1", choose) as front:
        data, found = azure(front.endpoint).get_tail("a", 2)
        headers = {name.lower(): value for name, value in front.seen[-1][2].items()}
        assert headers["if-match"] == '"7"'
    assert (bytes(data), found.size_bytes) == (b"lo", 5)


@pytest.mark.parametrize("connect", [azure, gcs])
def test_deleting_what_is_gone_is_no_error_on_azure_and_gcs(connect: Callable[[str], Store]):
    with proxy("http://127.0.0.1:1", lambda _: Answer(404, "<Error><Code>BlobNotFound</Code></Error>")) as front:
        connect(front.endpoint).delete(["a", "b"])


def test_a_missing_object_names_its_url(moto: S3Server):
    store = moto.open("folder")
    with pytest.raises(NotFound) as caught:
        store.get("a/b")
    assert str(caught.value) == f"s3://{BUCKET}/folder/a/b: no such object"


@pytest.mark.parametrize("folder", ["a b", "a%20b", "100%", "é+~", "%C3%A9", "a%2Fb"])
def test_folder_of_a_url_is_a_key_as_it_is(seaweedfs: S3Server, folder: str):
    parent = os.urandom(6).hex()
    seaweedfs.open(f"{parent}/{folder}").put("x", b"1")
    assert [found.key for found in seaweedfs.open(parent).list_objects()] == [f"{folder}/x"]

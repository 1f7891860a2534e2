"""Errors as obstore 0.12.1 words them; the shortened texts are from real answers."""

from __future__ import annotations

import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, NotSupportedError, PermissionDeniedError

from underlay.errors import Truncated, Unavailable, UnderlayError
from underlay.store.remote_errors import RequestFailure, create_outcome, explain, read_failure
from underlay.store.store import Outcome


def answered(status: str, code: str, retries: int = 0) -> str:
    return (
        f"Generic S3 error: Error performing PUT http://h/lake/k?sig=SECRET in 7ms - Server returned non-2xx status "
        f"code: {status}: <?xml version='1.0'?><Error><Code>{code}</Code><Signature>SECRET</Signature></Error>"
        f"\n\nDebug source:\nGeneric {{\n    retries: {retries},\n    max_retries: 5,\n}}"
    )


LOST = """Generic S3 error: Error performing PUT http://h/status%20code:%20403 in 105µs - HTTP error: lost

Debug source:
Generic {
    store: "S3",
    source: RetryError(
        RetryErrorImpl {
            retries: 2,
            max_retries: 2,
            inner: Http(
                HttpError {
                    kind: Connect,
"""


def test_status_code_and_retries_are_read_from_the_text():
    failure = read_failure(GenericError(answered("503 Service Unavailable", "SlowDown", 3)))
    assert failure == RequestFailure(status=503, code="SlowDown", retry_count=3)
    assert str(failure) == "503 SlowDown, after 3 retries"


def test_a_lost_connection_has_no_status_whatever_the_key_is_called():
    failure = read_failure(GenericError(LOST))
    assert failure == RequestFailure(status=None, code=None, retry_count=2, transport="Connect")
    assert create_outcome(failure) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (AlreadyExistsError(answered("412 Precondition Failed", "PreconditionFailed")), Outcome.REFUSED),
        (AlreadyExistsError(answered("412 Precondition Failed", "PreconditionFailed", 1)), Outcome.REFUSED),
        (AlreadyExistsError("Object already exists at that location: k"), Outcome.REFUSED),
        (AlreadyExistsError(answered("409 Conflict", "ConditionalRequestConflict")), Outcome.UNKNOWN),
        (AlreadyExistsError(answered("409 Conflict", "BlobAlreadyExists")), Outcome.REFUSED),
        (PermissionDeniedError(answered("403 Forbidden", "AccessDenied")), None),
        (PermissionDeniedError(answered("403 Forbidden", "AccessDenied", 1)), Outcome.UNKNOWN),
        (FileNotFoundError(answered("404 Not Found", "NoSuchBucket")), None),
        (GenericError(answered("500 Internal Server Error", "InternalError")), Outcome.UNKNOWN),
        (GenericError(answered("400 Bad Request", "RequestTimeout")), Outcome.UNKNOWN),
        (GenericError("something that no release has said yet"), Outcome.UNKNOWN),
        (NotSupportedError("no conditional put"), None),
    ],
)
def test_a_create_has_three_outcomes(error: BaseError | FileNotFoundError, outcome: Outcome | None):
    assert create_outcome(read_failure(error)) is outcome


def test_a_failed_request_for_credentials_is_not_taken_for_the_objects():
    text = "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 1ms - HTTP error"
    failure = read_failure(GenericError(text))
    assert failure.lacks_credentials
    assert create_outcome(failure) is None
    assert "no credentials" in str(explain(failure, "s3://lake"))
    about_a_key = text.replace("169.254.169.254/latest/api", "h/lake")
    assert not read_failure(GenericError(about_a_key)).lacks_credentials


@pytest.mark.parametrize(
    ("failure", "kind", "words"),
    [
        (RequestFailure(status=301, code=None, retry_count=0), Unavailable, "region"),
        (RequestFailure(status=416, code=None, retry_count=0), Truncated, "past the end"),
        (RequestFailure(status=None, code=None, retry_count=0), Unavailable, "no answer"),
    ],
)
def test_errors_say_what_to_do(failure: RequestFailure, kind: type[UnderlayError], words: str):
    error = explain(failure, "s3://lake/k")
    assert type(error) is kind
    assert words in str(error)


def test_nothing_but_status_code_and_retries_is_shown():
    for text in [answered("403 Forbidden", "AccessDenied", 1), answered("500 Oh", "InternalError"), LOST]:
        assert "SECRET" not in str(explain(read_failure(GenericError(text)), "s3://lake/k"))
        assert "http" not in str(explain(read_failure(GenericError(text)), "s3://lake/k"))

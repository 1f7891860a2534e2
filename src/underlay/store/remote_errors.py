"""Interprets the errors of obstore.

obstore reports a failed request in prose that quotes the URL, the response body and more, which may contain a
credential (Azure's SAS tokens are part of the URL, S3 quotes the access key and the string it signed). So we extract
only the HTTP status, the store's error code and the number of retries, and never show anything else.

The exception's type is not enough: S3's 409, which writes nothing, is an AlreadyExistsError as 412 is, and a failed
listing is a GenericError whatever the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from underlay.errors import NotFound, Replaced, Truncated, Unavailable, UnderlayError, Unsupported
from underlay.store.defaults import FAILED
from underlay.store.store import Outcome

ERRORS = (BaseError, FileNotFoundError)
"""What obstore raises when a request fails."""

_STATUS = re.compile(r"Server returned non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_RETRIES = re.compile(r"\bretries: (\d+)")
_HTTP_KIND = re.compile(r"HttpError \{\s*kind: (\w+)")
_RANGE_PAST_END = re.compile(r"StartTooLarge \{|source: NotPartial")
_REDIRECT = "Received redirect without LOCATION"
_CREDENTIALS = re.compile(
    r"Generic \w+ error: Error performing (?:token request|\w+ https?://(?:169\.254\.|\[fd00:ec2:|sts\.))"
)
"""A request that was not for the object, but to an identity service for credentials."""
_PROFILE = re.compile(rf"External AWS credential provider: RuntimeError: {FAILED}: (\w{{1,64}})")
"""boto3 could not make credentials of a profile; the group says why."""

_STATUS_OF_TYPE: dict[type[Exception], int] = {
    FileNotFoundError: 404,
    AlreadyExistsError: 412,
    PreconditionError: 412,
    PermissionDeniedError: 403,
    UnauthenticatedError: 401,
    NotSupportedError: 501,
}
"""For errors of requests that never went over HTTP."""

_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"}
_ACCESS = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidSecurity"}
_REGION = {"AuthorizationHeaderMalformed", "PermanentRedirect"}
_TOO_LARGE = {"EntityTooLarge", "KeyTooLongError", "RequestBodyTooLarge"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailure:
    """A failed request."""

    status: int | None
    """HTTP status, or the one an HTTP store would have given; None when there was no answer."""
    code: str | None
    """The store's own word, such as NoSuchBucket."""
    retry_count: int
    """How often obstore had repeated the request before it gave up."""
    transport: str | None = None
    """Why there was no answer, such as Connect or Timeout."""
    lacks_credentials: bool = False
    """Whether it was the request for credentials that failed."""

    @property
    def is_final(self) -> bool:
        """Whether this answer means that nothing was written and that the same request will never succeed."""
        named = _NO_BUCKET | _ACCESS | _REGION | _TOO_LARGE
        return self.lacks_credentials or self.status in {301, 401, 403, 404, 405, 413, 501} or self.code in named

    @property
    def is_missing_object(self) -> bool:
        """Whether the object does not exist, while its bucket does, as far as the store said."""
        return self.status == 404 and self.code not in _NO_BUCKET

    @property
    def is_range_past_end(self) -> bool:
        """Whether a range began at or after the end of its object."""
        return self.status == 416

    def __str__(self) -> str:
        words = [str(word) for word in (self.status, self.code, self.transport) if word is not None]
        said = " ".join(words) or "no answer"
        return f"{said}, after {self.retry_count} retries" if self.retry_count else said


def read_failure(error: Exception) -> RequestFailure:
    """What an error raised by obstore says."""
    text = str(error)
    status = _STATUS.search(text)
    code = _CODE.search(text)
    retries = _RETRIES.search(text)
    transport = _HTTP_KIND.search(text)
    profile = _PROFILE.search(text)
    known = next((number for kind, number in _STATUS_OF_TYPE.items() if isinstance(error, kind)), None)
    if status is None and _RANGE_PAST_END.search(text):
        known = 416
    if status is None and _REDIRECT in text:
        known = 301
    return RequestFailure(
        status=int(status[1]) if status else known,
        code=profile[1] if profile else code[1] if code else None,
        retry_count=int(retries[1]) if retries else 0,
        transport=transport[1] if transport else None,
        lacks_credentials=profile is not None or _CREDENTIALS.match(text) is not None,
    )


def create_outcome(failure: RequestFailure) -> Outcome | None:
    """What a failed create means; None when nothing was written and trying again cannot help.

    A final answer to a repeated request is unknown: the first attempt may have been carried out.
    """
    if failure.status in {304, 412} or (failure.status == 409 and failure.code == "BlobAlreadyExists"):
        return Outcome.REFUSED
    if failure.is_final and failure.retry_count == 0:
        return None
    return Outcome.UNKNOWN


def explain(failure: RequestFailure, place: str, *, is_write: bool = False) -> UnderlayError:
    """The error to raise for a failed request about the object or folder at `place`."""
    if failure.lacks_credentials:
        if failure.code is not None:
            problem = f"the AWS profile gives no credentials ({failure.code})"
            return Unavailable(problem, place=place, hint='Log in: "aws sso login", or check the profile.')
        return Unavailable("no credentials found", place=place, hint=_CREDENTIALS_HINT)
    if failure.code in _NO_BUCKET or (failure.is_missing_object and is_write):
        return Unavailable("the bucket or container does not exist", place=place, hint="Create it, or correct the URL.")
    if failure.is_missing_object:
        return NotFound("no such object", place=place)
    if failure.status in {401, 403} or failure.code in _ACCESS:
        return Unavailable(f"access denied ({failure})", place=place, hint=_CREDENTIALS_HINT)
    if failure.status == 301 or failure.code in _REGION:
        return Unavailable(f"the bucket is in another region ({failure})", place=place, hint="Set the region.")
    if failure.status == 412:
        return Replaced("the object changed since it was described", place=place, hint="Its etag has changed.")
    if failure.is_range_past_end:
        return Truncated("the bytes asked for reach past the end of the object", place=place)
    if failure.status == 501:
        return Unsupported(f"the store does not support this ({failure})", place=place)
    return Unavailable(f"the request to the store failed ({failure})", place=place, hint="Try again later.")


_CREDENTIALS_HINT = "Check the credentials, in the environment, the options or a profile, and what they permit."

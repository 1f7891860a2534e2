"""Verifies that data files and sidecars exist, with the size, etag and identity that the index records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from underlay.cache.same_file import current_etag
from underlay.errors import Damaged, InvalidRequest, NotFound, Replaced, Unavailable, UnderlayError
from underlay.index.keys import is_own
from underlay.maintain.verify.finding import FindingKind, Severity, VerifyFinding
from underlay.maintain.verify.history import History, RecordedFile, known_file
from underlay.maintain.verify.runner import VerifyContext
from underlay.pm.format.checksum import identity
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.verify import check_structure
from underlay.scan.read.file_stores import ObjectPlace
from underlay.store.store import Store, StoredObject

Listed = Mapping[str, StoredObject]
"""The objects in the revision's folder, by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesCheck:
    """What was found, and which files can be read."""

    findings: tuple[VerifyFinding, ...]
    whole: tuple[RecordedFile, ...]


def verify_files(work: VerifyContext, history: History, listed: Listed) -> FilesCheck:
    """Check every file against the listing of its revision's folder; files elsewhere with a request each."""
    findings: list[VerifyFinding] = []
    whole: list[RecordedFile] = []
    files = list(history.files.values())
    problems = work.each(lambda facts: _file_problem(work, history, facts, listed), files)
    for facts, problem in zip(files, problems, strict=True):
        if problem is None:
            whole.append(facts)
        else:
            findings.append(file_finding(history, facts.location, problem))
    return FilesCheck(findings=tuple(findings), whole=tuple(whole))


def file_finding(history: History, location: str, problem: UnderlayError) -> VerifyFinding:
    """The finding for a file that is lost."""
    versions = history.with_file(location)
    is_missing = isinstance(problem, NotFound)
    kind = (
        FindingKind.MISSING
        if is_missing
        else FindingKind.INCONSISTENT
        if isinstance(problem, Replaced)
        else FindingKind.DAMAGED
    )
    hint = "Its rows are lost unless there is a copy: put the same bytes back under the same name."
    # one of our own files that is missing is always a loss: somebody deleted what versions still reference
    is_older = not is_own(location) and all(span.end <= (history.newest_version or 0) for span in versions)
    if is_older:
        hint = "The newest version does not need it. To read older ones, put the same bytes back under the same name."
    return VerifyFinding(
        kind=kind,
        severity=Severity.OLDER if is_older else Severity.LOST,
        place=history.keys.file(location) or location,
        problem="the file is missing" if is_missing else _words(problem),
        versions=versions,
        hint=hint,
    )


def _words(problem: UnderlayError) -> str:
    """The problem without its hint: the finding has its own."""
    plain = UnderlayError(problem.problem, expected=problem.expected, found=problem.found)
    return str(plain)


def _file_problem(work: VerifyContext, history: History, facts: RecordedFile, listed: Listed) -> UnderlayError | None:
    key = history.keys.file(facts.location)
    place = ObjectPlace(work.store, key or "")
    if is_own(facts.location) and key is not None:
        # A file that is not listed may have been put during the listing.
        found = listed.get(key) or work.store.head(key)
    else:
        try:
            place = work.stores.locate(history.keys, facts.location)
            found = place.store.head(place.key)
        except (Unavailable, InvalidRequest) as error:
            return error
    if found is None:
        return NotFound("the file is missing")
    if found.size_bytes != facts.size_bytes:
        return Damaged("the file has the wrong size", expected=facts.size_bytes, found=found.size_bytes)
    if facts.etag is not None and found.etag != facts.etag:
        return _other_bytes(place, facts)
    return None


def _other_bytes(place: ObjectPlace, facts: RecordedFile) -> UnderlayError | None:
    """The problem if a registered file with a changed etag has other bytes too."""
    try:
        current_etag(place.store, place.key, known_file(facts))
    except (Replaced, NotFound, Unavailable) as problem:
        return problem
    return None


def verify_sidecars(work: VerifyContext, history: History) -> Iterator[tuple[RecordedFile, UnderlayError]]:
    """The files whose sidecars are missing or wrong, with the reason. One request for each."""
    files = [facts for facts in history.files.values() if facts.sidecar_bytes]
    problems = work.each(lambda facts: _sidecar_problem(work.store, history, facts), files)
    for facts, problem in zip(files, problems, strict=True):
        if problem is not None:
            yield facts, problem


def _sidecar_problem(store: Store, history: History, facts: RecordedFile) -> UnderlayError | None:
    try:
        sidecar = read_sidecar(ObjectPlace(store, history.keys.sidecar(facts.location)), facts)
    except (NotFound, Damaged) as error:
        return error
    return next(check_structure(sidecar), None)


def read_sidecar(place: ObjectPlace, facts: RecordedFile) -> Sidecar:
    """The sidecar of a file. Raises NotFound, or Damaged when it is not the one that was written."""
    data = place.store.get(place.key)[0]
    if len(data) != facts.sidecar_bytes:
        raise Damaged("the sidecar has the wrong size", expected=facts.sidecar_bytes, found=len(data))
    if (found := identity(data)) != facts.sidecar_crc:
        raise Damaged(
            "the sidecar was replaced or is damaged", expected=f"{facts.sidecar_crc:#010x}", found=f"{found:#010x}"
        )
    return decode(data, check=False, parquet_size=facts.size_bytes)


def sidecar_finding(
    history: History, facts: RecordedFile, problem: UnderlayError, *, repaired: bool | None
) -> VerifyFinding:
    """The finding for a wrong sidecar. `repaired` says whether it was repaired; None when nobody tried."""
    is_missing = isinstance(problem, NotFound)
    words = "the sidecar is missing" if is_missing else _words(problem)
    hint = 'Run "underlay verify --repair". Readers also rebuild it from its file.'
    if repaired is False:
        words = f"{words}, and rebuilding it from its file gives a different one"
        hint = "Its file is damaged, or was written by another release. Queries read without it."
    return VerifyFinding(
        kind=FindingKind.SIDECAR,
        severity=Severity.DERIVED,
        place=history.keys.sidecar(facts.location),
        problem=words,
        versions=history.with_file(facts.location),
        hint=None if repaired else hint,
        is_repaired=bool(repaired),
    )

"""Verifies that the source-tree pages of all versions exist, are intact, and match what their parent pages say."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from underlay.errors import Damaged, NotFound, UnderlayError
from underlay.index.root import PageRef, Sources
from underlay.index.sources.page import Child, decode_page, inner_children
from underlay.index.sources.walk import top_page
from underlay.maintain.verify.finding import FindingKind, Severity, VerifyFinding, VersionRange
from underlay.maintain.verify.history import History
from underlay.maintain.verify.runner import VerifyContext
from underlay.store.store import Store


@dataclass(slots=True)
class PageCheck:
    """The pages that were looked at, with each page's parents, and what is wrong."""

    parents: dict[str, set[str]] = field(default_factory=dict)
    wrong: dict[str, UnderlayError] = field(default_factory=dict)


def verify_sources(work: VerifyContext, history: History) -> tuple[Collection[str], list[VerifyFinding]]:
    """Read every page of every version's tree once, level by level. Returns their ids, and what was found."""
    check = PageCheck()
    trees = {facts.tree.id: facts.tree for facts in history.versions.values() if facts.tree is not None}
    level = list(_tops(check, trees))
    while level:
        below: dict[str, Child] = {}
        for node, found in zip(level, work.each(lambda node: _read(work.store, history, node), level), strict=True):
            if isinstance(found, UnderlayError):
                check.wrong[node.ref.id] = found
                continue
            for child in found:
                if child.ref.id not in check.parents:
                    below[child.ref.id] = child
                check.parents.setdefault(child.ref.id, set()).add(node.ref.id)
        level = list(below.values())
    findings = [_finding(history, page, problem, _above(check, page)) for page, problem in check.wrong.items()]
    return check.parents.keys(), findings


def _tops(check: PageCheck, trees: dict[str, PageRef]) -> Iterator[Child]:
    for ref in trees.values():
        check.parents[ref.id] = set()
        try:
            top = top_page(Sources(tree=ref))
        except Damaged as error:
            check.wrong[ref.id] = error
            continue
        if top is not None:
            yield top


def _read(store: Store, history: History, node: Child) -> list[Child] | UnderlayError:
    """The children of a page; empty for a leaf."""
    try:
        rows = decode_page(store.get(history.keys.source_page(node.ref.id))[0], node)
    except (NotFound, Damaged) as error:
        return error
    return inner_children(rows, node) if node.ref.height else []


def _above(check: PageCheck, page: str) -> set[str]:
    """The page and all of its ancestors."""
    found, waiting = {page}, [page]
    while waiting:
        new = check.parents[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _finding(history: History, page: str, problem: UnderlayError, above: set[str]) -> VerifyFinding:
    is_missing = isinstance(problem, NotFound)
    versions: tuple[VersionRange, ...] = history.with_trees(above)
    return VerifyFinding(
        kind=FindingKind.MISSING if is_missing else FindingKind.DAMAGED,
        severity=Severity.LOST,
        place=history.keys.source_page(page),
        problem="the page of the source tree is missing" if is_missing else problem.problem,
        versions=versions,
        hint="Rows are not affected, but which sources were ingested is no longer known: one may be ingested again.",
    )

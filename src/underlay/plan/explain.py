"""Explains a plan: what each step dropped and why, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from underlay.plan.by_part import PartChoice
from underlay.plan.chunks import chunk_bytes, fetch_bytes
from underlay.plan.part import BoolArray, Numbers
from underlay.plan.plan import BlockPlan, Totals, is_alive
from underlay.prune import Cause, Verdict

_SHOWN_CHARS = 120
_WORDS = {
    Cause.ROWLESS: "without rows",
    Cause.NEVER: "no value can match",
    Cause.ALL_NULL: "all null",
    Cause.NO_NULLS: "no nulls",
    Cause.NO_NAN: "no NaN",
    Cause.BELOW: "by range",
    Cause.ABOVE: "by range",
    Cause.GAP: "by range",
    Cause.BLOOM: "by bloom filter",
    Cause.BRANCHES: "no branch can match",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """What one part of the predicate dropped at one level, and why.

    `level` is `segment`, `partition`, `file`, `block`, `deleted` or `bloom`. `files` counts files dropped as a whole
    before their blocks were judged. `data_bytes` are of whole files where files were dropped, and of the plan's columns
    where blocks were.
    """

    level: str
    predicate: str
    reason: str
    files: int
    blocks: int
    data_bytes: int


def steps_of(plan: BlockPlan) -> list[PlanStep]:
    """The steps in the order in which they were taken, summed over all parts."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    if plan.skipped:
        refs = plan.skipped
        counts = [sum(r.file_count for r in refs), sum(r.block_count for r in refs), sum(r.data_bytes for r in refs)]
        sums["segment", _shown(str(plan.predicate)), "by range"] = counts
    for choice in plan.choices:
        for drop in drops_of(plan, choice):
            total = sums.setdefault((drop.level, drop.predicate, drop.reason), [0, 0, 0])
            for at, amount in enumerate(_amounts(plan, choice, drop)):
                total[at] += amount
    order = ("segment", "partition", "file", "block", "deleted", "bloom")
    return [
        PlanStep(level=level, predicate=text, reason=reason, files=files, blocks=blocks, data_bytes=size)
        for (level, text, reason), (files, blocks, size) in sorted(
            sums.items(), key=lambda item: order.index(item[0][0])
        )
    ]


def explain(plan: BlockPlan) -> str:
    """The plan in a few lines."""
    totals, kept = plan.totals, plan.kept
    lines = [f"table: {_amount(totals)}, {totals.data_bytes:,} bytes"]
    files, blocks = totals.files, totals.blocks
    for step in steps_of(plan):
        lines.append(_line(step, files, blocks))
        files, blocks = files - step.files, blocks - step.blocks
    lines.append(
        f"read: {_amount(kept)}, {fetch_bytes(plan):,} bytes of {_count(len(plan.columns), 'column')};"
        f" {_count(int(plan.must.sum()), 'block')} matched in full without a filter"
    )
    return "\n".join(lines)


def _amount(totals: Totals) -> str:
    return ", ".join((_count(totals.files, "file"), _count(totals.blocks, "block"), _count(totals.rows, "row")))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def to_dict(plan: BlockPlan) -> dict[str, object]:
    """The same for programs."""
    return {
        "predicate": str(plan.predicate),
        "table": asdict(plan.totals),
        "kept": {**asdict(plan.kept), "fetch_bytes": fetch_bytes(plan), "full_matches": int(plan.must.sum())},
        "steps": [asdict(step) for step in steps_of(plan)],
    }


def _line(step: PlanStep, files: int, blocks: int) -> str:
    text = f"{step.predicate}: " if step.predicate else ""
    if step.level in ("segment", "partition", "file"):
        level = " (whole segments)" if step.level == "segment" else ""
        return f"{text}{step.files:,} of {files:,} files dropped {step.reason}{level}"
    return f"{text}{step.blocks:,} of {blocks:,} blocks dropped {step.reason}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartDrop:
    """What one step dropped in one part: files as a mask of them, or blocks by their numbers in the segment."""

    level: str
    predicate: str
    reason: str
    files: BoolArray | None = None
    blocks: Numbers | None = None


def drops_of(plan: BlockPlan, choice: PartChoice) -> Iterator[PartDrop]:
    """The steps by which a part lost blocks, in their order."""
    alive = is_alive(choice)
    if choice.by_partition is not None and not choice.by_partition.all():
        lost = alive & ~choice.by_partition
        yield PartDrop(level="partition", predicate=_shown(str(plan.predicate)), reason="by partition", files=lost)
        alive = alive & choice.by_partition
    for text, reason, mask in _by_part(choice.by_file):
        if (mask & alive).any():
            yield PartDrop(level="file", predicate=text, reason=reason, files=mask & alive)
    if choice.by_block is not None:
        for text, reason, mask in _by_part(choice.by_block):
            yield PartDrop(level="block", predicate=text, reason=reason, blocks=choice.judged[mask])
    if len(choice.gone):
        yield PartDrop(level="deleted", predicate="", reason="since all their rows are deleted", blocks=choice.gone)
    for text, blocks in choice.by_bloom:
        yield PartDrop(level="bloom", predicate=_shown(text), reason=_WORDS[Cause.BLOOM], blocks=blocks)


def _by_part(verdict: Verdict) -> Iterator[tuple[str, str, BoolArray]]:
    """What each part of the conjunction dropped, by reason."""
    for part in range(-1, len(verdict.findings)):
        text = _shown(str(verdict.findings[part].predicate)) if part >= 0 else ""
        is_mine = (verdict.parts == part) & ~verdict.kept
        causes = np.unique(verdict.causes[is_mine]).tolist()
        for reason in dict.fromkeys(_WORDS[Cause(cause)] for cause in causes):
            same = [cause for cause in causes if _WORDS[Cause(cause)] == reason]
            yield text, reason, is_mine & np.isin(verdict.causes, same)


def _amounts(plan: BlockPlan, choice: PartChoice, drop: PartDrop) -> tuple[int, int, int]:
    """Files, blocks and bytes of a drop."""
    files, mask = choice.part.segment.files, drop.files
    if mask is not None:
        return int(mask.sum()), int(files.block_counts[mask].sum()), int(files.size_bytes[mask].sum())
    blocks = np.zeros(0, np.int64) if drop.blocks is None else drop.blocks
    return 0, len(blocks), chunk_bytes(plan, choice.part.segment, blocks)


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"

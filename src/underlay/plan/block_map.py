"""Every block of a version with what a plan decided about it: read, read in full, or dropped, and by which step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from underlay.index.segment.segment import Segment
from underlay.plan.by_part import PartChoice
from underlay.plan.chunks import chunk_table
from underlay.plan.explain import PlanStep, drops_of, steps_of
from underlay.plan.part import Numbers
from underlay.plan.plan import BlockPlan
from underlay.schema.table_schema import TableSchema

NO_STEP = 0xFFFF
"""The step of a block that no step dropped."""


class BlockVerdict(IntEnum):
    """What a plan decided about a block. A verdict that drops it has the name of a step's level."""

    READ = 0
    READ_WHOLE = 1
    SEGMENT = 2
    PARTITION = 3
    FILE = 4
    BLOCK = 5
    DELETED = 6
    BLOOM = 7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartVerdicts:
    """What a plan decided about each block of a segment, in the segment's order."""

    verdicts: NDArray[np.uint8]
    steps: NDArray[np.uint16]


def verdicts_of(plan: BlockPlan) -> tuple[list[PlanStep], list[PartVerdicts]]:
    """The steps of the plan, and what it decided in each of its parts; reads nothing of skipped segments."""
    steps = steps_of(plan)
    places = {(step.level, step.predicate, step.reason): at for at, step in enumerate(steps)}
    return steps, [_judge(plan, choice, places) for choice in plan.choices]


def skipped_verdicts(segment: Segment) -> PartVerdicts:
    """The verdicts on a segment that the plan skipped, which is always its first step."""
    count = segment.block_count
    return PartVerdicts(verdicts=np.full(count, BlockVerdict.SEGMENT, np.uint8), steps=np.zeros(count, np.uint16))


def _judge(plan: BlockPlan, choice: PartChoice, places: dict[tuple[str, str, str], int]) -> PartVerdicts:
    segment = choice.part.segment
    verdicts = np.full(segment.block_count, BlockVerdict.FILE, np.uint8)
    steps = np.full(segment.block_count, NO_STEP, np.uint16)
    for drop in drops_of(plan, choice):
        mask = drop.blocks if drop.files is None else drop.files[segment.file_of_block]
        verdicts[mask] = BlockVerdict[drop.level.upper()]
        steps[mask] = min(places[drop.level, drop.predicate, drop.reason], NO_STEP)
    verdicts[choice.blocks] = np.where(choice.must, BlockVerdict.READ_WHOLE, BlockVerdict.READ)
    steps[choice.blocks] = NO_STEP
    return PartVerdicts(verdicts=verdicts, steps=steps)


def bytes_of_blocks(segment: Segment, schema: TableSchema, blocks: Numbers, leaves: Sequence[int]) -> Numbers:
    """The bytes of these leaves in each block; leaf by leaf, so that a million blocks take little memory."""
    segment.prefetch(statistics=leaves, places=leaves)
    total = np.zeros(len(blocks), np.int64)
    for leaf in leaves:
        chunks = chunk_table(segment, schema, blocks, [leaf])
        total += np.where(chunks.is_fetched, chunks.sizes, 0)[:, 0]
    return total

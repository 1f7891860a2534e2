"""The registry rolled forward to what the store holds."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from underlay.errors import RegistryRefused
from underlay.index.keys import RevisionKeys
from underlay.registry.database.database import Database
from underlay.registry.database.database_errors import RESTORE_HINT
from underlay.registry.mirror.apply import apply_batch, hold, mirrored
from underlay.registry.mirror.fold import VersionStep, fold
from underlay.registry.mirror.read_versions import steps_after
from underlay.store.store import Store


def roll_forward(database: Database, store: Store, folder: str, revision: str, until: int | None = None) -> int:
    """Apply every version of a revision that the registry lacks, up to `until` when that is known; the new head.

    A transaction for each few versions, and none when there is nothing new: then one statement and one request.
    """
    while True:
        with database.read() as connection:
            head = mirrored(connection, revision).head
        for steps in steps_after(store, RevisionKeys.of(folder, revision), head, until):
            with database.write() as connection:
                head = apply_steps(connection, folder, revision, steps)
            if head < steps[-1].outline.version:
                break  # another process applied some of them first
        else:
            return head


def apply_steps(connection: Connection, folder: str, revision: str, steps: Sequence[VersionStep]) -> int:
    """Apply those of `steps`, versions in order, that the registry lacks; the head after it.

    That may be further, and is less when the registry lacks versions before them: then nothing was applied. Raises
    RegistryRefused when the registry holds another history.
    """
    if any(step.everything is not None for step in steps):
        hold(connection, revision)  # files are read after the head
    before = mirrored(connection, revision)
    known = next((step.outline for step in steps if step.outline.version == before.head), None)
    if known is not None and known.commit_id != before.head_id:
        raise RegistryRefused(
            f"the registry holds another version {before.head}",
            place=revision,
            expected=known.commit_id,
            found=before.head_id,
            hint=f"The registry or the store was brought back from a copy. {RESTORE_HINT}",
        )
    new = [step for step in steps if step.outline.version > before.head]
    if not new or new[0].outline.version > before.head + 1:
        return before.head
    batch = fold(revision, before, new)
    if not apply_batch(connection, folder, batch):
        return mirrored(connection, revision).head
    return batch.last.version

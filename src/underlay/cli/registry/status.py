"""`underlay registry status`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import typer

from underlay.cli.common.output import print_json, print_table, printable, show_bytes, show_count
from underlay.cli.registry.choice import ChosenRegistry
from underlay.errors import Damaged, RegistryRefused, Unavailable, UnderlayError
from underlay.registry.database.migration import REVISIONS
from underlay.registry.database.schema import NONE
from underlay.registry.rebuild.status import Status

_RESTORE = 'Run "underlay registry restore".'


class RegistryState(StrEnum):
    """Whether a registry is used."""

    CURRENT = "current"
    BEHIND = "behind"
    EMPTY = "empty"
    OLD_SCHEMA = "old_schema"
    NEW_SCHEMA = "new_schema"
    REFUSED = "refused"
    DAMAGED = "damaged"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryVerdict:
    """A state in words, and what to do."""

    state: RegistryState
    words: str
    hint: str | None = None

    @property
    def is_used(self) -> bool:
        """Whether commands use the registry, if necessary after bringing it up to date."""
        return self.state in (RegistryState.CURRENT, RegistryState.BEHIND, RegistryState.EMPTY)


def show_status(chosen: ChosenRegistry, *, json: bool) -> None:
    """Print the registry's status. Ends with exit code 1 if it is not used."""
    try:
        status = chosen.registry.status()
        verdict = judge(status)
    except (Unavailable, Damaged) as error:
        status, verdict = None, _unusable(error, chosen.registry.url)
    if json:
        print_json(_as_json(chosen, status, verdict))
    else:
        _print(chosen, status, verdict)
    if not verdict.is_used:
        raise typer.Exit(1)


def judge(status: Status) -> RegistryVerdict:
    """The verdict on a status."""
    if status.schema is None:
        hint = 'The next command that writes creates it; "underlay registry follow" does it now.'
        return RegistryVerdict(state=RegistryState.EMPTY, words="empty: there is no registry here yet", hint=hint)
    if status.schema not in REVISIONS:
        words = "not used: it was made by a newer release"
        return RegistryVerdict(state=RegistryState.NEW_SCHEMA, words=words, hint="Update Underlay.")
    if status.schema != status.newest_schema:
        words = "not used: its tables are from an older release"
        hint = 'Run "underlay registry migrate" when every machine has this release.'
        return RegistryVerdict(state=RegistryState.OLD_SCHEMA, words=words, hint=hint)
    if status.problem is not None:
        return RegistryVerdict(
            state=RegistryState.REFUSED, words=f"refused: {_bare(status.problem)}", hint=status.problem.hint
        )
    ahead = [table.table for table in status.tables if table.applied > table.newest]
    if ahead:
        words = f"refused: it has versions that the store does not have, of {', '.join(ahead)}"
        hint = f'The store was restored from an older copy, or lost versions; "underlay verify" tells which. {_RESTORE}'
        return RegistryVerdict(state=RegistryState.REFUSED, words=words, hint=hint)
    if status.behind:
        hint = 'Commands that use these tables apply it; "underlay registry follow" does it now.'
        return RegistryVerdict(
            state=RegistryState.BEHIND,
            words=f"used, and {show_count(status.behind, 'commit')} behind the store",
            hint=hint,
        )
    return RegistryVerdict(state=RegistryState.CURRENT, words="used, and up to date with the store")


def _unusable(error: Unavailable | Damaged, url: str) -> RegistryVerdict:
    """The verdict on a registry that cannot be read. Errors of the store are raised."""
    if error.place != url and not isinstance(error, RegistryRefused):
        raise error
    if isinstance(error, Unavailable):
        return RegistryVerdict(state=RegistryState.UNREACHABLE, words=f"not used: {error.problem}", hint=error.hint)
    state = RegistryState.REFUSED if isinstance(error, RegistryRefused) else RegistryState.DAMAGED
    return RegistryVerdict(state=state, words=f"not used: {error.problem}", hint=error.hint)


def _bare(error: UnderlayError) -> str:
    """An error's text without its hint."""
    return str(UnderlayError(error.problem, place=error.place, expected=error.expected, found=error.found))


def _print(chosen: ChosenRegistry, status: Status | None, verdict: RegistryVerdict) -> None:
    rows = [("registry", chosen.registry.url), ("lake", chosen.lake), ("state", verdict.words)]
    if verdict.hint:
        rows.append(("", f"→ {verdict.hint}"))
    if status is not None and status.schema is not None:
        rows.append(
            ("schema", status.schema if verdict.is_used else f"{status.schema}; ours is {status.newest_schema}")
        )
    if status is not None and status.schema == status.newest_schema:
        rows += [
            ("catalog", f"entry {_number(status.applied_entry)} of {status.newest_entry}"),
            ("footers", f"{show_bytes(status.footer_cache_bytes)} cached"),
        ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name.ljust(width)}  {printable(value)}")
    if status is None or not status.tables:
        return
    print()
    print_table(
        ("table", "in the registry", "in the store", "behind"),
        [
            (table.table, _number(table.applied), table.newest, max(table.newest - table.applied, 0))
            for table in status.tables
        ],
    )
    tables = show_count(sum(table.applied < table.newest for table in status.tables), "table")
    print(f"Newest versions; {tables} behind.")


def _number(applied: int) -> int | None:
    return None if applied == NONE else applied


def _as_json(chosen: ChosenRegistry, status: Status | None, verdict: RegistryVerdict) -> dict[str, object]:
    found: dict[str, object] = {
        "registry": chosen.registry.url,
        "lake": chosen.lake,
        "state": verdict.state,
        "is_used": verdict.is_used,
        "problem": None if verdict.is_used else verdict.words,
        "hint": verdict.hint,
    }
    if status is None:
        return found
    return found | {
        "schema": status.schema,
        "newest_schema": status.newest_schema,
        "lake_id": status.lake_id,
        "applied_entry": _number(status.applied_entry),
        "newest_entry": status.newest_entry,
        "behind": status.behind,
        "footer_cache_bytes": status.footer_cache_bytes,
        "tables": [
            {
                "table": table.table,
                "revision": table.revision,
                "applied": _number(table.applied),
                "newest": table.newest,
            }
            for table in status.tables
        ],
    }

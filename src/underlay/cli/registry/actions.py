"""`underlay registry follow`, `restore` and `migrate`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import typer

from underlay.cli.common.output import print_json, progress_bar, say, show_count
from underlay.cli.registry.choice import ChosenRegistry
from underlay.cli.registry.difference import difference_json, difference_lines
from underlay.errors import Damaged
from underlay.registry.rebuild.difference import Difference
from underlay.registry.rebuild.restore import OnProgress, RestoreProgress


def follow_store(chosen: ChosenRegistry, *, json: bool) -> None:
    """Apply what is missing, and report how much that was."""
    revisions = 0
    with progress_bar("following") as show:

        def tell(done: int, total: int) -> None:
            nonlocal revisions
            revisions = total
            show(done, total)

        versions = chosen.registry.follow(tell)
    if json:
        print_json({"registry": chosen.registry.url, "versions": versions, "revisions": revisions})
    elif versions:
        say(f"{show_count(versions, 'version')} of {show_count(revisions, 'revision')} applied")
    else:
        say("already up to date")


def restore_registry(chosen: ChosenRegistry, *, json: bool) -> None:
    """Rebuild the registry, and report what it holds."""
    with _versions_bar("restoring") as tell:
        done = chosen.registry.restore(tell)
    if json:
        counts = {name.replace("_count", "s"): count for name, count in asdict(done).items()}
        print_json({"registry": chosen.registry.url, **counts})
        return
    parts = [
        show_count(done.table_count, "table"),
        show_count(done.revision_count, "revision"),
        show_count(done.version_count, "version"),
        show_count(done.segment_count, "segment"),
        show_count(done.file_count, "file"),
        show_count(done.source_count, "source"),
    ]
    say(f"{chosen.registry.url}: restored: {', '.join(parts)}")


def show_differences(chosen: ChosenRegistry, *, json: bool) -> None:
    """Show what a restore would change. Ends with exit code 1 if that is anything."""
    try:
        found = _compare(chosen)
    except Damaged as error:
        if error.place != chosen.registry.url:
            raise
        _show_unreadable(chosen, error, json=json)
        raise typer.Exit(1) from None
    if json:
        for difference in found:
            print_json(difference_json(difference))
    else:
        for line in difference_lines(found):
            print(line)
        say(_differences_summary(chosen, found))
    if found:
        raise typer.Exit(1)


def migrate_registry(chosen: ChosenRegistry, *, json: bool) -> None:
    """Migrate the registry to this release's schema."""
    before, after = chosen.registry.migrate()
    if json:
        print_json({"registry": chosen.registry.url, "from": before, "to": after})
    elif before == after:
        say(f"{chosen.registry.url}: already at {after}")
    else:
        say(f"{chosen.registry.url}: {before or 'empty'} → {after}")


def _compare(chosen: ChosenRegistry) -> list[Difference]:
    with _versions_bar("comparing") as tell:
        return chosen.registry.differences(tell)


def _show_unreadable(chosen: ChosenRegistry, error: Damaged, *, json: bool) -> None:
    """Report a registry that cannot be compared."""
    problem = "there is no registry here yet" if _is_empty(chosen) else error.problem
    if json:
        print_json({"registry": chosen.registry.url, "problem": problem})
    else:
        say(f'{chosen.registry.url}: {problem}. "underlay registry restore" rebuilds it from the store')


def _is_empty(chosen: ChosenRegistry) -> bool:
    try:
        return chosen.registry.status().schema is None
    except Damaged:
        return False


@contextmanager
def _versions_bar(what: str) -> Iterator[OnProgress]:
    """A function that takes the progress of reading all versions."""
    with progress_bar(what) as show:

        def tell(progress: RestoreProgress) -> None:
            show(progress.revisions_done, progress.revision_count, f"{progress.versions_done:,} versions")

        yield tell


def _differences_summary(chosen: ChosenRegistry, found: list[Difference]) -> str:
    if not found:
        return f"{chosen.registry.url}: matches the store"
    rows = show_count(len(found), "row")
    return f"{chosen.registry.url}: {rows} differ from the store; nothing was changed. --json lists all of them"

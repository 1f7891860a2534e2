"""Describes in words what a change of rows did, or would do."""

from __future__ import annotations

from underlay.change.update.result import Changed


def show_change(name: str, done: Changed, *, is_dry_run: bool) -> str:
    """One line: how many rows, and what is rewritten to change them."""
    if done.is_repeat:
        return f"{name}: nothing changed; version {done.version} has the change of this token already"
    counted = (
        (done.rows_inserted, "inserted"),
        (done.rows_updated, "updated"),
        (done.rows_deleted, "deleted"),
    )
    deeds = " and ".join(f"{_count(rows, 'row')} {deed}" for rows, deed in counted if rows)
    head = f"{name}, version {done.version}" if is_dry_run else f"{name}: version {done.version}"
    if not deeds:
        return f"{head}{':' if is_dry_run else ','} no row {'would change' if is_dry_run else 'changed'}; {_cost(done)}"
    return f"{head}: would have {deeds}; {_cost(done)}" if is_dry_run else f"{head}, {deeds}; {_cost(done)}"


def _cost(done: Changed) -> str:
    read = f"{done.blocks_read:,} of {_count(done.blocks_total, 'block')} read ({done.bytes_read:,} bytes)"
    rewritten = f", {done.blocks_rewritten:,} of them rewritten" if done.blocks_rewritten else ""
    written = f", {done.bytes_written:,} bytes written" if done.bytes_written else ""
    return f"{read}{rewritten}{written}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

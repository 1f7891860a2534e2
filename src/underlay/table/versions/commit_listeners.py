"""Listeners that are called after each commit of this process, to any lake.

The thread that committed calls a watcher while it holds no lock. A watcher must not raise: the commit is done.
"""

from __future__ import annotations

from collections.abc import Callable

Watcher = Callable[[str, str], None]
"""Called with the URL of the store, and the folder of the table with a new version, or of the catalog."""

_watchers: tuple[Watcher, ...] = ()


def watch(watcher: Watcher) -> None:
    """Call it after each commit from now on."""
    global _watchers
    _watchers = (*_watchers, watcher)


def unwatch(watcher: Watcher) -> None:
    """Stop calling it."""
    global _watchers
    _watchers = tuple(one for one in _watchers if one != watcher)


def tell(store_url: str, folder: str) -> None:
    """Call all listeners: a commit is done."""
    for watcher in _watchers:
        watcher(store_url, folder)

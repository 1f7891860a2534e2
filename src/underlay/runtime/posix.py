"""POSIX, which local lakes need and Windows lacks. Underlay can be imported everywhere: what needs POSIX says so when
it is used."""

from __future__ import annotations

import os

from underlay.errors import Unsupported


def need_posix(what: str) -> None:
    """Raise Unsupported where the operating system has no POSIX files: `what` is plural, for the message."""
    if not hasattr(os, "O_NOFOLLOW"):
        raise Unsupported(
            f"{what} need POSIX files (hard links, descriptors of folders), which this operating system lacks",
            hint="Use Linux, macOS or WSL; lakes in object storage and memory:// work here too.",
        )


def open_flags(*names: str) -> int:
    """Flags of `os.open` by name; one that the system lacks is 0, so that a module with flags can be imported."""
    return sum(int(getattr(os, name, 0)) for name in names)

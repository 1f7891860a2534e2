"""A unique name for this process, by which others can tell that it has ended.

The name says which machine and boot, which namespaces, which process id and when that process began. For a process on
the same boot and in the same namespaces, the kernel tells for certain whether it still runs. For any other, nothing is
known.
"""

from __future__ import annotations

import os
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACES = ("/proc/self/ns/pid", "/proc/self/ns/time")
_STATE, _THREADS, _STARTED = 0, 17, 19
"""Fields of `/proc/<pid>/stat`, counted after the command's name."""


def own_process() -> str:
    """The name of this process; empty where the system does not provide every part of it."""
    place = _own_place()
    fields = _stat(os.getpid())
    return f"{place}/{os.getpid()}/{fields[_STARTED]}" if place and fields else ""


def is_gone(process: str) -> bool:
    """Whether the process of this name has certainly ended. False if that is not known."""
    place, _, rest = process.partition("/")
    pid, _, started = rest.partition("/")
    if not place or place != _own_place() or not pid.isdecimal() or int(pid) < 1:
        return False
    try:
        os.kill(int(pid), 0)  # only asks; a process that we may not signal is running
    except ProcessLookupError:
        return True
    except OSError:
        pass
    fields = _stat(int(pid))
    if not fields:
        return False
    is_dead = fields[_STATE] in ("Z", "X") and fields[_THREADS] in ("0", "1")
    return is_dead or fields[_STARTED] != started


def _own_place() -> str:
    """The machine, boot and namespaces of this process, without a slash; empty where they are not known."""
    try:
        parts = [os.uname().nodename, _BOOT.read_text().strip(), *(os.readlink(name) for name in _NAMESPACES)]
    except OSError:
        return ""
    return ",".join(parts).replace("/", "-")


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, UnicodeDecodeError):
        return []
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > _STARTED else []

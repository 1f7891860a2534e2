"""Writes a file that appears completely or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from underlay.errors import InvalidRequest, from_os_error


@contextmanager
def written_whole(name: str) -> Iterator[BinaryIO]:
    """Write to a temporary file beside the target, which replaces the target at the end, and is removed after a
    failure.

    A pipe or a device is written directly. Raises InvalidRequest for a folder, NotFound if the target's folder does not
    exist.
    """
    path = os.path.realpath(os.path.expanduser(name))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise from_os_error(error, name) from None
    if mode is not None and stat.S_ISDIR(mode):
        raise InvalidRequest("this is a folder", place=name, hint="Name a file in it.")
    if mode is not None and not stat.S_ISREG(mode):
        with _opened(path, name) as file:
            yield file
        return
    unfinished = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.urandom(4).hex()}.tmp")
    try:
        with _opened(unfinished, name) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(unfinished, stat.S_IMODE(mode))
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def _opened(path: str, name: str) -> BinaryIO:
    try:
        return open(path, "wb")
    except OSError as error:
        raise from_os_error(error, name) from None

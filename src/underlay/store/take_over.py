"""Files that other programs wrote on a local store's file system, made objects of the store without copying them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from underlay.errors import from_os_error
from underlay.store.directory import existing_folder
from underlay.store.key import check_key


def sync_file(path: Path) -> None:
    """Have all bytes of a file on the disk, whoever wrote them on this machine. Raises NotFound, Unavailable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise from_os_error(error, str(path)) from error


def take_over(root: Path, folder: str, names: Mapping[Path, str]) -> None:
    """Move synced files to these names in a folder that the store has, durably: a rename each, one sync of the folder.

    A name must be new: an object that has it is replaced. Raises NotFound, Unavailable; some may be moved then.
    """
    segments = check_key(folder).split("/")
    try:
        with existing_folder(root, segments) as descriptor:
            for path, name in names.items():
                os.rename(path, check_key(name), dst_dir_fd=descriptor)
            os.fsync(descriptor)
    except OSError as error:
        raise from_os_error(error, str(root / folder)) from error

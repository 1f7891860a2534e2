"""The sidecars of a table's files: read and cached, and rebuilt where they are missing or damaged.

A sidecar is derived from its file, so a damaged one is no loss: it is rebuilt with a warning and put back. Registered
files have none in the store; theirs are made in memory on demand.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass

from underlay.cache.objects import DecodedCache
from underlay.cache.same_file import KnownFile, get_same_ranges
from underlay.errors import Damaged, NotFound, Unavailable, UnderlayError
from underlay.index.keys import RevisionKeys
from underlay.parquet.footer.tail import TAIL_BYTES
from underlay.plan.plan import PlannedFile
from underlay.pm.convert.build import bitsets_of, bloom_ranges
from underlay.pm.convert.footer import convert
from underlay.pm.format.checksum import identity
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.scan.read.file_stores import ObjectPlace

_SPREAD = 4


class SidecarRebuilt(UserWarning):
    """A sidecar was missing or damaged, and was rebuilt from its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecars:
    """The sidecars of one revision."""

    cache: DecodedCache
    keys: RevisionKeys

    def load(self, file: PlannedFile, place: ObjectPlace) -> Sidecar:
        """The sidecar of a file. One request; two when it must be built, and one to put it back."""
        if not file.sidecar_bytes:
            return self._built(file, place)
        key = self.keys.sidecar(file.location)
        try:
            return self.cache.sidecar(
                place.store, key, size_bytes=file.sidecar_bytes, crc=file.sidecar_crc, file_bytes=file.size_bytes
            )
        except (NotFound, Damaged) as problem:
            return self._rebuilt(file, place, key, problem)

    def _built(self, file: PlannedFile, place: ObjectPlace) -> Sidecar:
        """A sidecar made in memory, and cached there."""
        name = ("built sidecar", place.store.url, place.key, file.etag or "", file.footer_crc)
        return self.cache.memory.get(
            name, lambda: decode(self._build(file, place), check=False), lambda found: _SPREAD * found.size
        )

    def _rebuilt(self, file: PlannedFile, place: ObjectPlace, key: str, problem: UnderlayError) -> Sidecar:
        data = self._build(file, place)
        if len(data) != file.sidecar_bytes or identity(data) != file.sidecar_crc:
            return self._built(file, place)
        warnings.warn(f"sidecar {key} was rebuilt from its file: {problem}", SidecarRebuilt, stacklevel=2)
        with contextlib.suppress(Unavailable):  # a reader may lack the right to write; then the next one rebuilds it
            place.store.put(key, data)
        return decode(data, check=False)

    def _build(self, file: PlannedFile, place: ObjectPlace) -> bytes:
        store, key = place
        footer = self.cache.footer(
            store,
            key,
            file_bytes=file.size_bytes,
            footer_bytes=file.footer_bytes,
            footer_crc=file.footer_crc,
            etag=file.etag,
        )
        wanted = bloom_ranges(footer, file.size_bytes)
        known = KnownFile(file.size_bytes, file.etag, file.footer_bytes, file.footer_crc)
        fetched = get_same_ranges(store, key, list(wanted.values()), known)
        bitsets = bitsets_of(dict(zip(wanted, fetched, strict=True)))
        return convert(footer, file.size_bytes - TAIL_BYTES - file.footer_bytes, blooms=bitsets)

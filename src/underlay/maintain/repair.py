"""Rebuilds derived objects: the sidecars of files that Underlay wrote. It never writes anything else."""

from __future__ import annotations

from deflate import crc32

from underlay.errors import ChecksumMismatch, Damaged, NotFound, Unsupported
from underlay.index.keys import RevisionKeys
from underlay.maintain.verify.history import RecordedFile
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import TAIL_BYTES
from underlay.pm.convert.build import bitsets_of, bloom_ranges
from underlay.pm.convert.footer import convert
from underlay.pm.format.checksum import identity
from underlay.store.store import Store
from underlay.values.ranges import ByteRange


def repair_sidecar(store: Store, keys: RevisionKeys, facts: RecordedFile) -> bool:
    """Rebuild the sidecar of our own file, and put it if it equals the one that was written.

    Returns False, and writes nothing, when the file yields another sidecar. Three requests.
    """
    try:
        data = build_sidecar(store, keys, facts)
    except (NotFound, Damaged, Unsupported):
        return False
    if len(data) != facts.sidecar_bytes or identity(data) != facts.sidecar_crc:
        return False
    store.put(keys.sidecar(facts.location), data)
    return True


def build_sidecar(store: Store, keys: RevisionKeys, facts: RecordedFile) -> bytes:
    """The sidecar of our own file. Raises NotFound, or Damaged when the file is not the one that was written."""
    key = keys.file(facts.location) or facts.location
    end = facts.size_bytes - TAIL_BYTES
    wanted = [ByteRange(end - facts.footer_bytes, end)]
    (raw,) = store.get_ranges(key, wanted, size_bytes=facts.size_bytes)
    if crc32(raw) != facts.footer_crc:
        raise ChecksumMismatch("the footer was replaced or is damaged", place=key)
    footer = Footer.parse(bytes(raw))
    places = bloom_ranges(footer, facts.size_bytes)
    fetched = store.get_ranges(key, list(places.values()), size_bytes=facts.size_bytes)
    bitsets = bitsets_of(dict(zip(places, fetched, strict=True)))
    return convert(footer, end - facts.footer_bytes, blooms=bitsets)

"""A plan with fewer blocks, by the bloom filters in its files' sidecars."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from underlay.plan.plan import Plan, PlannedFile
from underlay.plan.refine import FileBlooms, bloom_candidates, refine
from underlay.pm.columns import bloom_bounds
from underlay.scan.file_shape import FileShape
from underlay.scan.locate import Place
from underlay.scan.sidecars import Sidecars

_FETCHERS = 16


def refine_by_blooms(
    plan: Plan, sidecars: Sidecars, shape_of: Callable[[str], FileShape], locate: Callable[[str], Place]
) -> Plan:
    """The plan without blocks whose filters say that no row equals what is asked for.

    Reads the sidecars of files that equality on a column with filters has not ruled out, side by side; none when the
    predicate asks for no equality.
    """
    candidates = bloom_candidates(plan)
    if not candidates.files:
        return plan
    wanted = set(candidates.files)
    files = [file for file in plan.files() if (file.part, file.row) in wanted]
    load = partial(_load, fields=frozenset(candidates.fields), sidecars=sidecars, shape_of=shape_of, locate=locate)
    if len(files) == 1:
        found = [load(files[0])]
    else:
        with ThreadPoolExecutor(min(_FETCHERS, len(files))) as pool:
            found = list(pool.map(load, files))
    return refine(plan, {(file.part, file.row): blooms for file, blooms in zip(files, found, strict=True)})


def _load(
    file: PlannedFile,
    *,
    fields: frozenset[int],
    sidecars: Sidecars,
    shape_of: Callable[[str], FileShape],
    locate: Callable[[str], Place],
) -> FileBlooms:
    place = locate(file.location)
    shape = shape_of(file.layout)
    return sidecars.cache.memory.get(
        ("blooms", place.store.url, place.key, file.footer_crc, file.etag or "", fields),
        lambda: _blooms(file, place, shape, fields, sidecars),
        lambda _: file.sidecar_bytes or file.footer_bytes,
    )


def _blooms(
    file: PlannedFile, place: Place, shape: FileShape, fields: frozenset[int], sidecars: Sidecars
) -> FileBlooms:
    sidecar = sidecars.load(file, place)
    leaves = shape.file.schema.leaves
    return {
        field: bloom_bounds(sidecar, leaves[position])
        for position, field in enumerate(shape.layout.fields)
        if field in fields
    }

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from underlay.registry.mirror.read_versions import ahead


def test_versions_are_read_by_the_caller_when_no_thread_can_be_started_any_longer():
    pool = ThreadPoolExecutor(2)
    pool.shutdown()  # refuses as a pool does while the interpreter exits
    assert list(ahead(pool, [partial(pow, 2, n) for n in range(200)])) == [2**n for n in range(200)]

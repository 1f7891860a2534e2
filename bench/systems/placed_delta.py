"""Delta Lake in a world: its log beside the files, in a folder or on S3."""

from __future__ import annotations

from functools import cached_property

from deltalake import DeltaTable, convert_to_deltalake

from bench.systems.delta import Delta
from bench.systems.servers import ACCESS_KEY, REGION, SECRET_KEY
from bench.systems.world import World


class PlacedDelta(Delta):
    """The world's files, converted in place."""

    def __init__(self, world: World) -> None:
        self._path = world.files
        self._options = None if world.endpoint is None else _storage_options(world.endpoint)

    @cached_property
    def table(self) -> DeltaTable:
        """The table at the version it had when it was opened."""
        return DeltaTable(self._path, storage_options=self._options)

    def import_files(self) -> None:
        """See System."""
        convert_to_deltalake(self._path, storage_options=self._options)


def _storage_options(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "aws_conditional_put": "etag",
    }

"""Where a table's files lie, as Hadoop names it."""

from __future__ import annotations

from urllib.parse import unquote

from underlay.errors import Unsupported

_HADOOP_SCHEMES = {"file": "file", "s3": "s3a", "gs": "gs", "abfs": "abfs", "abfss": "abfss"}


def hadoop_folder(store_url: str, folder: str) -> str:
    """A folder of a lake's store as Hadoop's Path reads it: nothing in it is quoted. Raises Unsupported."""
    scheme, _, rest = store_url.partition("://")
    if scheme not in _HADOOP_SCHEMES:
        raise Unsupported(
            "Spark cannot read this store by itself", found=store_url, hint="Use a lake on a disk, s3:// or gs://."
        )
    path = (unquote(rest) if scheme == "file" else rest).rstrip("/")
    return f"{_HADOOP_SCHEMES[scheme]}://{path}/{folder}"

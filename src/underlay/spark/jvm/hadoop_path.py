"""Paths of files and revisions in Hadoop's form, without percent-encoding."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from underlay.errors import Unsupported
from underlay.table.versions.revision import Revision

_HADOOP_SCHEMES = {"file": "file", "s3": "s3a", "s3a": "s3a", "gs": "gs", "abfs": "abfs", "abfss": "abfss"}
_WITH_ACCOUNT = ("abfs", "abfss")
_AZURE_HINT = "Name the lake abfss://container@account.dfs.core.windows.net/path."


def hadoop_folder(store_url: str, folder: str) -> str:
    """A folder of a lake's store. Raises Unsupported for a store that Hadoop does not have."""
    return f"{hadoop_path(store_url).rstrip('/')}/{folder}"


def hadoop_path(url: str) -> str:
    """The store, folder or file of a URL. Raises Unsupported."""
    scheme, _, rest = url.partition("://")
    return f"{hadoop_scheme(url)}://{unquote(rest) if scheme == 'file' else rest}"


def hadoop_scheme(url: str) -> str:
    """Hadoop's scheme for the file system of a URL. Raises Unsupported."""
    scheme = url.partition("://")[0]
    found = _HADOOP_SCHEMES.get(scheme)
    if scheme == "az" or (scheme in _WITH_ACCOUNT and "@" not in urlsplit(url).netloc):
        raise Unsupported("Spark needs the storage account in an Azure URL", found=url, hint=_AZURE_HINT)
    if found is None:
        raise Unsupported(
            "Spark cannot read this store by itself", found=url, hint="Use a lake on a disk, s3:// or gs://."
        )
    return found


def revision_url(revision: Revision) -> str:
    """Where a revision is stored, whatever the name of its table."""
    return f"{revision.store.url}/{revision.place}"

"""The blob store that a URL names: a folder of this host, or a bucket.

The folder store is our own, because obstore's local store never syncs; everything else is obstore.
Both keep the same names and the same promises (`workmate_server.ports.BlobStore`).
"""

from collections.abc import Mapping

from obstore.exceptions import BaseError

from workmate_server.config import ConfigError, Settings, blob_folder
from workmate_server.evidence.folder_blobs import FolderBlobStore
from workmate_server.evidence.object_blobs import ObjectBlobStore
from workmate_server.ports import BlobStore, Hooks


def open_blob_store(
    url: str, settings: Settings, hooks: Hooks, options: Mapping[str, str] | None = None
) -> BlobStore:
    """Return the store for a URL: `file:///FOLDER`, `s3://BUCKET/PREFIX`, `gs://…`, `az://…`.

    Nothing is reached or made yet. `options` belong to the bucket's provider (endpoint, keys,
    region); without them its usual environment variables count. Raises ConfigError,
    `blobs_unsupported`, for a URL or options that name no store.
    """
    folder = blob_folder(url)
    if folder is not None:
        return FolderBlobStore(folder, hooks, settings.blob_read_bytes)
    try:
        return ObjectBlobStore(url, settings, options or {})
    except BaseError as error:
        detail = str(error).partition("\n")[0]
        raise ConfigError("blobs_unsupported", detail) from error

"""The bucket of a farm of several machines, as Django's STORAGES takes it."""

# of a file being read, beyond which it lies on disk and not in memory
MAX_MEMORY_BYTES = 8 << 20


def bucket_storage(name: str, *, url: str = "", region: str = "") -> dict[str, object]:
    """django-storages' S3 backend; `url` of a server that is not Amazon's, which then is asked by path."""
    options: dict[str, object] = {
        "bucket_name": name,
        "file_overwrite": True,
        "default_acl": None,
        "gzip": False,
        "max_memory_size": MAX_MEMORY_BYTES,
    }
    if url:
        options |= {"endpoint_url": url, "addressing_style": "path"}
    if region:
        options["region_name"] = region
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}

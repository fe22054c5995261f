"""Uploads as the registry's tests make them: sent by the API, inspected as a `prepare` worker does."""

from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from farm.registry import services
from farm.registry.models import Version

File = Path | tuple[str, bytes]


def part_of(file: File) -> SimpleUploadedFile:
    """A file of a form: one of the disk, or a name with its content."""
    name, content = file if isinstance(file, tuple) else (file.name, file.read_bytes())
    return SimpleUploadedFile(name, content)


def upload_and_inspect(api: Client, *files: File, **fields: File) -> Version:
    """The version that these files are; `fields` are files that stand in fields of their own."""
    form: dict[str, Any] = {"files": [part_of(file) for file in files]}
    answer = api.post("/api/v1/uploads", form | {name: part_of(file) for name, file in fields.items()})
    assert answer.status_code in (200, 202), answer.json()
    services.inspect_version(answer.json()["id"])
    return Version.objects.get(pk=answer.json()["id"])

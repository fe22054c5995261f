"""Receives uploaded files, from multipart forms and raw bodies, straight into drafts of the store.

Nothing is held in memory beyond one chunk. A draft that no service keeps is removed when the request ends.
"""

import sys
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError

from farm.base.refusals import Invalid, TooLarge
from farm.registry.storage import Draft, check_free_space

# how much of a body is read at once
CHUNK_BYTES = 256 * 1024

if TYPE_CHECKING:
    Upload = UploadedFile[bytes]
else:
    Upload = UploadedFile


class StoredUpload(Upload):
    """An uploaded file whose content lies in a draft; closing it removes the draft unless a service kept it."""

    def __init__(self, draft: Draft, *, content_type: str | None = None) -> None:
        super().__init__(file=draft.file, name=draft.name, content_type=content_type, size=draft.bytes)
        self.draft = draft

    def close(self) -> None:
        self.draft.discard()


class StoreUploadHandler(FileUploadHandler):
    """The farm's upload handler for Django, which writes the files of a form to drafts and hashes them.

    It raises MultiPartParserError for a person who has not signed in.
    """

    chunk_size = CHUNK_BYTES

    def __init__(self, request: HttpRequest | None = None) -> None:
        super().__init__(request)
        self.draft: Draft | None = None

    def handle_raw_input(
        self,
        input_data: IO[bytes],
        META: dict[str, str],  # noqa: N803 - Django's name
        content_length: int,
        boundary: str,
        encoding: str | None = None,
    ) -> None:
        """Check the sender and the declared length of a form before its body is read; always return None.

        Raises MultiPartParserError for a person who has not signed in, TooLarge over the limit, and NoSpace where the
        disk has no room for it.
        """
        if self.request is None or not self.request.user.is_authenticated:
            # answered with 400, and nothing of the body is read
            raise MultiPartParserError("Files are taken from people who have signed in.")
        check_upload_size(content_length)

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.draft = Draft(self.file_name or "file")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if self.draft is not None:
            self.draft.write(raw_data)

    def file_complete(self, file_size: int) -> StoredUpload | None:
        """Seal the draft of a file that has arrived, and return it as an upload; None where no file was begun."""
        draft, self.draft = self.draft, None
        if draft is None:
            return None
        draft.seal()
        return StoredUpload(draft, content_type=self.content_type)

    def upload_interrupted(self) -> None:
        """Discard the file that was cut short, if any, and raise Invalid unless another error stopped the upload."""
        if self.draft is None:
            return
        self.draft.discard()
        # an error that stopped the upload is the one to report
        if sys.exc_info()[0] is None:
            raise Invalid(f"The upload ended in the middle of {self.draft.name}; send it again.", code="cut_short")


def check_upload_size(content_length: int) -> None:
    """Check a body's declared length before reading it. Raises TooLarge over the limit, NoSpace without disk space."""
    if content_length > settings.MAX_UPLOAD_BYTES:
        raise TooLarge(
            f"The upload has {content_length:,} bytes; this farm takes at most {settings.MAX_UPLOAD_BYTES:,}.",
            code="too_large",
        )
    check_free_space(bytes_wanted=content_length)


def receive_body(request: HttpRequest, *, name: str) -> Draft:
    """Read the raw body of a request into a sealed draft.

    Raises Invalid where the body has another length than declared (0 where none is), TooLarge over the limit, and
    NoSpace. No draft is left then.
    """
    declared = int(request.headers.get("Content-Length") or 0)
    check_upload_size(declared)
    draft = Draft(name)
    try:
        while chunk := request.read(CHUNK_BYTES):
            draft.write(chunk)
        if draft.bytes != declared:
            raise Invalid(
                f"{name} ended after {draft.bytes:,} of {declared:,} bytes; upload it again.", code="cut_short"
            )
        draft.seal()
    except BaseException:
        draft.discard()
        raise
    return draft

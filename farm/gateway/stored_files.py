"""Files of the store as answers to nodes, read piece by piece while the node takes them."""

import asyncio
from collections.abc import AsyncIterator

from django.http import FileResponse

PIECE_BYTES = 1 << 20


class StoredFile(FileResponse):
    """A file under ASGI, where Django's own would be read into memory whole before its first byte went out."""

    block_size = PIECE_BYTES

    async def __aiter__(self) -> AsyncIterator[bytes]:
        file = self.file_to_stream
        while file is not None and (piece := await asyncio.to_thread(file.read, self.block_size)):
            yield piece

"""The open long polls of each node: a few, since a line that was cut leaves one behind until its time is over."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

MAX_OF_NODE = 2


class LongPolls:
    """LongPolls of one gateway process. For its event loop alone."""

    def __init__(self) -> None:
        self._open: dict[int, list[asyncio.Future[None]]] = {}

    @contextmanager
    def open(self, node: int) -> Iterator[asyncio.Future[None]]:
        """A poll of a node; ends when newer ones have taken its place."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        polls = self._open.setdefault(node, [])
        polls.append(mine)
        for older in polls[:-MAX_OF_NODE]:
            if not older.done():
                older.set_result(None)
        try:
            yield mine
        finally:
            polls.remove(mine)
            if not polls:
                self._open.pop(node, None)

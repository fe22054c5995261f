"""Reading the broker's messages: which block a message of a hardware tag's or node's queue is about."""

import base64
import binascii
import json
from typing import NamedTuple

from farm.contract.version import MEASURE_TASK


class BlockMessage(NamedTuple):
    """A block, and the attempt at which it may be claimed."""

    block: str
    attempt: int


def parse_message(text: bytes) -> tuple[BlockMessage | None, dict[str, object]]:
    """What a message is about, as kombu's Redis transport writes it, and the message itself; None for anything else."""
    try:
        message = json.loads(text)
        arguments = json.loads(base64.b64decode(message["body"], validate=True))[1]
        found = BlockMessage(str(int(arguments["block"])), int(arguments["attempt"]))
        is_ours = message["headers"]["task"] == MEASURE_TASK
    except (ValueError, KeyError, IndexError, TypeError, binascii.Error):
        return None, {}
    return (found if is_ours else None), message

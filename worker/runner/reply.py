"""The answer's way back: JSON on a private pipe, so that a model or a provider that prints cannot garble it."""

import json
import os
import sys

REPLY_FD_VARIABLE = "ONNXFARM_REPLY_FD"


def send(answer: dict[str, object]) -> None:
    """Write the whole answer to the pipe named by the environment, or to stdout when a person runs it by hand.

    NaN and infinity are refused here: the farm's messages carry finite numbers only.
    """
    text = json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()
    descriptor = int(os.environ.get(REPLY_FD_VARIABLE, sys.stdout.fileno()))
    view = memoryview(text)
    while view:
        view = view[os.write(descriptor, view) :]

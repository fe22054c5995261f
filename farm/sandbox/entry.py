"""The child's side of `run_function`: reads a payload from stdin, calls one function, answers on the private pipe."""

import importlib
import json
import os
import sys


def main() -> None:
    """Call the function that the command line names (`module:function`) with the JSON value that stdin holds.

    The result is written as JSON to the pipe. An exception of the function is not caught.
    """
    module, _, function = sys.argv[1].partition(":")
    answer = getattr(importlib.import_module(module), function)(json.load(sys.stdin))
    with os.fdopen(int(os.environ["ONNXFARM_REPLY_FD"]), "w", encoding="utf-8") as reply:
        json.dump(answer, reply)


if __name__ == "__main__":
    main()

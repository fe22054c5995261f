"""A staged runner that misbehaves in one pass when its order says so; otherwise it is the real one.

Copied over the stage's `__main__.py`. The session entry `test.misbehave` holds `PASS:HOW`; the pass `turn` is the first
turn of a sample that takes turns, since a machine that stalls grants no further one.
"""

import io
import json
import os
import signal
import sys
import time


def misbehave(how: str, work_dir: str) -> None:
    reply = int(os.environ["ONNXFARM_REPLY_FD"])
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif how == "abort":
        os.abort()
    elif how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "hang":
        with open(os.path.join(work_dir, "hangs"), "w"):
            pass
        time.sleep(3600)
    elif how == "flood":
        while True:
            os.write(reply, b"x" * 65536)
    elif how == "chatter":
        while True:
            sys.stderr.write("warning: the same line again and again\n" * 1000)
    elif how == "garbage":
        os.write(reply, b"\xff\xfe{not json")
        os._exit(0)
    elif how == "silence":
        os._exit(0)
    elif how == "lies":
        # a well-formed answer of the wrong shape: times below zero, a sample of text
        os.write(reply, b'{"session_ms": -1, "sample": {"p50_ms": "fast"}, "executed": 7}')
        os._exit(0)
    elif how == "greed":
        held = []
        while True:
            held.append(bytearray(os.urandom(1 << 20)) * 16)
    elif how == "exit":
        sys.exit("the runner gave up")


text = sys.stdin.buffer.read()
order = json.loads(text)
wanted = order["session"]["config"].pop("test.misbehave", "")
when, _, what = wanted.partition(":")
if when in (order["kind"], "always"):
    misbehave(what, order["work_dir"])
sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps(order).encode()))

from worker.runner import interleaving  # noqa: E402
from worker.runner.entry import main  # noqa: E402

if when == "turn":
    hand_over = interleaving.Turns.wait_for_turn

    def misbehave_in_first(self: interleaving.Turns) -> None:
        hand_over(self)
        while what == "endless":
            hand_over(self)
        if self.count == 1:
            misbehave(what, order["work_dir"])

    interleaving.Turns.wait_for_turn = misbehave_in_first  # type: ignore[method-assign]

main()

"""A staged runner whose sessions leak when their input is another than the one before, and not otherwise.

Copied over the stage's `__main__.py`. 1 MiB in 1,000 inferences: 1,049 bytes each time that the bytes change.
`test.patient` asks nothing of the machine, `test.starved` keeps the generator from its arrivals, `test.dies` ends the
process by a signal amid them; `test.same` gives every set the first one's bytes.
"""

# mypy: disable-error-code="attr-defined,method-assign"

import hashlib
import io
import json
import os
import signal
import sys

LEAKED = 1_049
text = sys.stdin.buffer.read()
order = json.loads(text)
is_leaking = order["session"]["config"].pop("test.leak", "") == "1"
is_patient = order["session"]["config"].pop("test.patient", "") == "1"
is_same = order["session"]["config"].pop("test.same", "") == "1"
is_starved = order["session"]["config"].pop("test.starved", "") == "1"
is_dying = order["session"]["config"].pop("test.dies", "") == "1"
sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps(order).encode()))

from worker.runner.entry import main  # noqa: E402

if is_leaking:
    from worker.runner.engines import onnxruntime

    kept: list[bytes] = []
    last: list[bytes] = [b""]
    plain = onnxruntime.Feed.timed_call

    def timed_call(self):
        call = plain(self)
        arrays = [one[1] for one in self._held if isinstance(one, tuple)]
        own = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).digest()

        def leaking():
            if own != last[0]:
                last[0] = own
                kept.append(b"x" * LEAKED)
            return call()

        return leaking

    onnxruntime.Feed.timed_call = timed_call

if is_patient:
    # whatever else the machine does, nothing is refused for it; and no p99 is asked of so few
    from worker.runner.scenarios import arrivals, load

    arrivals.MAX_LATE_NS = 1 << 62
    load.ARRIVALS = 100

if is_same:
    from worker.runner.scenarios import fresh

    drawn = fresh.make_input_sets
    fresh.make_input_sets = lambda *given: drawn(*given)[:1] * 8

if is_starved:
    from worker.runner.scenarios import arrivals, load

    prompt = arrivals.RealClock.wait_until
    arrivals.RealClock.wait_until = lambda self, moment_ns: prompt(self, moment_ns + 2_000_000)
    load.ARRIVALS = 100

if is_dying:
    from worker.runner.scenarios import arrivals

    arrivals.RealClock.wait_until = lambda self, moment_ns: os.kill(os.getpid(), signal.SIGSEGV)

main()

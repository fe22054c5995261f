"""How near `load` comes to theory and to MLPerf's LoadGen on a real clock, and whether sessions agree under it.

Theory: 5,000 requests of a Poisson process; the mean wait is held against Lindley's recursion, fed with the measured
service times of the same requests. Server: LoadGen and our generator drive one callable at the same rates, one after
the other; whether the p99 keeps the bound, and the highest rate that does. Answers: those of two streams, of one
session and of one each, against those of a third session alone. Wants a quiet machine:

    uv run --no-project -p .venv/bin/python --with mlcommons-loadgen==6.0.17 python -m tests.bench.load --seed 1
"""

import argparse
import hashlib
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from farm.workshop.samples import builders
from tests.bench import figure, mlperf_server
from worker.runner import parity
from worker.runner.engines.protocol import Engine, Feed
from worker.runner.engines.table import find_engine_kind
from worker.runner.order import Order, PhaseTimer
from worker.runner.scenarios import load
from worker.runner.scenarios.arrivals import MAX_LATE_NS, Call, RealClock, Served, draw_unit_gaps, serve

ARRIVALS, SERVER_ARRIVALS = 5_000, 3_000
LOADS = ((0.6, 0.20), (0.8, 0.10))
# LoadGen's rates, as parts of what the callable could serve without a break, and its bound in service times
PARTS = (0.5, 0.6, 0.7, 0.8, 0.9)
BOUND_OF = 10.0
MOST_APART = 0.10
SETS = 8
# a key derivation leaves the interpreter to others, as an inference does; about 1 ms
TURNS = 1_500
# the sample transformer in one thread: long enough that a neighbour's turn of 3 to 5 ms is within the bound
ROWS = 128


def derive() -> None:
    """About a millisecond of native code."""
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", TURNS)


def sleep() -> None:
    """A millisecond of nothing."""
    time.sleep(0.001)


class Session:
    """The sample transformer as the runner opens it, and a callable for each set of inputs."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        model = builders.write_model("transformer", folder)
        self._order = Order(kind="sample", model=str(model), inputs="", provider="CPUExecutionProvider")
        self._kind = find_engine_kind(self._order)
        dice = np.random.default_rng(seed)
        self._sets = [{"x": dice.standard_normal((1, ROWS, 256), dtype=np.float32)} for _ in range(SETS)]

    def engine(self) -> Engine:
        """A new session."""
        return self._kind.open_engine(self._order, timer=PhaseTimer(launched_ns=None, entered_ns=0))

    def feeds(self, engine: Engine) -> list[Feed]:
        """Every set, bound and settled."""
        found = [self._kind.feed(engine, one) for one in self._sets]
        for feed in found:
            feed.run_first()
            feed.settle()
        return found

    def calls(self) -> list[Call]:
        """A callable for every set, of a new session."""
        return [feed.timed_call() for feed in self.feeds(self.engine())]

    def do_differ(self, one: dict[str, object], other: dict[str, object]) -> bool:
        """Whether an element is further off than the cell's tolerance."""
        compared = (
            parity.compare_output(name, other[name], np.asarray(value), **self._order.find_tolerance(name))
            for name, value in one.items()
        )
        return any(found.get("violations") or found.get("reason") for found in compared)


def usual_s(calls: Sequence[Call]) -> float:
    """What one call takes where half of the time is a wait, as under load: back to back it takes less."""
    alone = serve([calls], np.full(100, 0.001), clock=RealClock())
    half = serve([calls], np.full(400, 2e-9 * float(np.median(alone.services))), clock=RealClock())
    return float(np.median(half.services)) / 1e9


def waits_of(found: Served) -> tuple[float, float]:
    """Mean wait in ms as it was, and by the recursion W' = max(0, W + S - A)."""
    wait, total = 0, 0
    for gap, service in zip(np.diff(found.due).tolist(), found.services.tolist(), strict=False):
        wait = max(0, wait + service - gap)
        total += wait
    measured = (found.began.astype(np.int64) - found.due.astype(np.int64)).mean()
    return float(measured) / 1e6, total / found.due.size / 1e6


def theory(name: str, calls: Sequence[Call], *, arrivals: int, seed: int) -> list[dict[str, Any]]:
    """The mean wait at each load beside that of the recursion."""
    mean_s = usual_s(calls)
    found = []
    for part, most in LOADS:
        served = serve([calls], draw_unit_gaps(arrivals, seed) * mean_s / part, clock=RealClock())
        measured, expected = waits_of(served)
        found.append(
            {
                "work": name,
                "load": part,
                "service_ms": round(mean_s * 1e3, 4),
                "mean_service_ms": round(float(served.services.mean()) / 1e6, 4),
                "mean_wait_ms": round(measured, 4),
                "by_lindley_ms": round(expected, 4),
                "off": round(measured / expected - 1.0, 4),
                "may_be_off": most,
                "late_us": round(served.late_ns / 1e3, 1),
            }
        )
        say(found[-1])
    return found


def curves(calls: Sequence[Call], *, arrivals: int, seed: int, repeats: int) -> dict[str, Any]:
    """Our judgement of every rate and LoadGen's, each rate by both before the next; the first of the two by turns."""
    service_s = usual_s(calls)
    bound_ms = BOUND_OF * service_s * 1e3
    rows: list[dict[str, Any]] = []
    for repeat, (place, part) in itertools.product(range(repeats), enumerate(PARTS)):
        row: dict[str, Any] = {"repeat": repeat, "part": part, "rate_per_s": round(part / service_s, 2)}
        both = [ours, loadgens]
        for judge in both if (repeat + place) % 2 == 0 else both[::-1]:
            row |= judge(calls, part / service_s, bound_ms, arrivals, 100 * seed + repeat)
        rows.append(row)
        say(row)
    highest = [
        {
            side: load.find_highest_rate([_step(row, side) for row in rows if row["repeat"] == repeat], bound_ms)
            for side in ("ours", "loadgen")
        }
        for repeat in range(repeats)
    ]
    middle = {side: median(one[side] or 0.0 for one in highest) for side in ("ours", "loadgen")}
    return {
        "service_ms": round(service_s * 1e3, 4),
        "bound_ms": round(bound_ms, 4),
        "rates": rows,
        "highest_per_s": highest,
        "highest_median_per_s": middle,
        "apart": round(middle["ours"] / middle["loadgen"] - 1.0, 4) if middle["loadgen"] else None,
        "may_be_apart": MOST_APART,
        # nearer to the highest rate than it has to be told, either verdict is right
        "judged": _verdicts(rows, middle["ours"], is_near=False),
        "judged_near_the_highest": _verdicts(rows, middle["ours"], is_near=True),
    }


def _verdicts(rows: Sequence[dict[str, Any]], highest: float, *, is_near: bool) -> dict[str, Any]:
    """How many rates nearer than MOST_APART to the highest, or of the others, both judged, and which not alike."""
    some = [row for row in rows if (abs(row["rate_per_s"] / max(highest, 1e-9) - 1.0) < MOST_APART) == is_near]
    return {"rates": len(some), "otherwise": [row for row in some if row["ours_keeps"] != row["loadgen_keeps"]]}


def ours(calls: Sequence[Call], rate: float, bound_ms: float, arrivals: int, seed: int) -> dict[str, Any]:
    """Of one rate."""
    served = serve([calls], draw_unit_gaps(arrivals, seed) / rate, clock=RealClock())
    p99_ms = float(np.percentile(served.latencies, 99)) * 1e-6
    return {
        "ours_keeps": p99_ms <= bound_ms,
        "ours_p99_ms": p99_ms,
        "ours_service_ms": float(np.median(served.services)) / 1e6,
        "ours_late_us": served.late_ns / 1e3,
    }


def loadgens(calls: Sequence[Call], rate: float, bound_ms: float, arrivals: int, seed: int) -> dict[str, Any]:
    """Of one rate."""
    found = mlperf_server.judge(calls, rate=rate, bound_ms=bound_ms, arrivals=arrivals, seed=seed)
    return {"loadgen_keeps": found.is_valid, "loadgen_p99_ms": found.p99_ms, "loadgen_service_ms": found.service_ms}


def _step(row: dict[str, Any], side: str) -> load.RateStep:
    """A row as the product's own rule for the highest rate reads it."""
    due = np.zeros(1, dtype=np.uint64)
    ended = np.full(1, round(row[f"{side}_p99_ms"] * 1e6), dtype=np.uint64)
    return load.RateStep(row["rate_per_s"], Served(due, due, ended, due[:0]), cpu_ns=0)


def answers(session: Session, *, arrivals: int, seed: int) -> dict[str, Any]:
    """Every answer of two streams, of a shared session and of one each, against a third session's alone."""
    alone = [feed.outputs() for feed in session.feeds(session.engine())]
    found: dict[str, Any] = {}
    for name, count in (("shared", 1), ("each", 2)):
        engines = [session.engine() for _ in range(count)]
        kept: list[tuple[int, dict[str, object]]] = []
        streams = [
            [_keeping(feed, number, kept) for number, feed in enumerate(session.feeds(engines[stream % count]))]
            for stream in range(2)
        ]
        rate = 1.2 / usual_s(streams[0])
        kept.clear()
        serve(streams, draw_unit_gaps(arrivals, seed) / rate, clock=RealClock(is_shared=True))
        differing = sum(session.do_differ(alone[number], outputs) for number, outputs in kept)
        found[name] = {"answers": len(kept), "differing": differing}
    say(found)
    return found


def _keeping(feed: Feed, number: int, kept: list[tuple[int, dict[str, object]]]) -> Callable[[], object]:
    def call() -> None:
        feed.run()
        kept.append((number, feed.outputs()))

    return call


def say(found: object) -> None:
    """What was measured last, for whoever waits."""
    print(found, file=sys.stderr, flush=True)


def main() -> int:
    """Prints one JSON object; 1 where a part misses, 3 where other programs kept the generator from its arrivals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arrivals", type=int, default=ARRIVALS, help="requests of each load, and of answers")
    parser.add_argument("--server", type=int, default=SERVER_ARRIVALS, help="requests of each rate beside LoadGen")
    parser.add_argument("--repeats", type=int, default=3, help="how often LoadGen and ours go through the rates")
    parser.add_argument("--parts", default="theory,server,answers", help="which parts, with commas")
    asked = parser.parse_args()
    parts, figures = asked.parts.split(","), {"load_1m": os.getloadavg()[0], "arrivals": asked.arrivals}
    figures["server_arrivals"] = asked.server
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder), seed=asked.seed)
        work: dict[str, list[Call]] = {"sleep": [sleep], "native code": [derive], "session": session.calls()}
        if "theory" in parts:
            found = [theory(name, calls, arrivals=asked.arrivals, seed=asked.seed) for name, calls in work.items()]
            figures["theory"] = list(itertools.chain.from_iterable(found))
        if "server" in parts:
            figures["server"] = curves(work["session"], arrivals=asked.server, seed=asked.seed, repeats=asked.repeats)
        if "answers" in parts:
            figures["answers"] = answers(session, arrivals=asked.arrivals, seed=asked.seed)
    misses = list(_misses(figures))
    claim = "load's waits are Lindley's, its verdicts LoadGen's, and sessions answer alike under it"
    figure.publish(claim=claim, seed=asked.seed, figures={**figures, "misses": misses})
    is_late = any(row["late_us"] * 1e3 > MAX_LATE_NS for row in figures.get("theory", ()))
    return 3 if is_late else int(bool(misses))


def _misses(figures: dict[str, Any]) -> Any:
    for row in figures.get("theory", ()):
        if abs(row["off"]) > row["may_be_off"]:
            yield f"{row['work']} at {row['load']}: mean wait off by {row['off']:+.1%}"
    if server := figures.get("server"):
        apart = server["apart"]
        if apart is None or abs(apart) > MOST_APART:
            yield f"highest rate apart by {apart}"
        if told := server["judged"]["otherwise"]:
            yield f"{len(told)} of {server['judged']['rates']} rates judged otherwise"
    for name, one in figures.get("answers", {}).items():
        if one["differing"]:
            yield f"{one['differing']} of {one['answers']} answers differ, {name}"


if __name__ == "__main__":
    sys.exit(main())

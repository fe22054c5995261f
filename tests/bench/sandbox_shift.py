"""Whether sandbox, heartbeat and agent shift a cell's p50: inside against outside, paired.

    python -m tests.bench.sandbox_shift [--pairs 48] [--models transformer,convnet] [--seed 1]

Inside: the agent's launcher starts the runner in the sandbox while the lease's thread sends heartbeats over HTTP every
half second, far more often than in service. Outside: the same runner, the same order, started by itself with nothing
around it. Both are fresh processes of the same runtime on one core, and take turns as the arms of a block do.
"""

import json
import os
import random
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from farm.contract.blocks import BlockOrder, Lease
from farm.contract.cells import Budget
from farm.rules.comparing import verdicts
from farm.sandbox import confinement
from farm.sandbox.watch import RunningChild
from tests.bench.figure import publish
from tests.bench.workbench import prepared, write_fixed
from tests.integration.worker.making import Workbench
from tests.options import read_options
from worker.agent.connection.gateway import Gateway
from worker.agent.connection.lease import LeaseKeeper
from worker.agent.machine.affinity import choose_core
from worker.agent.measurement.checks import make_runner_order
from worker.agent.measurement.interleaving import Launch, interleave_processes
from worker.agent.measurement.orders import make_budget_part
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Answer, Launcher

TARGET = 0.005
LEASE_S = 2.0
LIMIT_S = 120.0


def main() -> None:
    """Prints the figures as JSON."""
    options = read_options(__doc__, pairs=48, models="transformer,convnet", seed=1)
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = options.models.split(",")
        models = [write_fixed(model, folder) for model in names]
        bench = Workbench(folder)
        with prepared(bench, models, folder=folder / "block") as (launcher, arms):
            found = {
                model: measure(launcher, arm, pairs=options.pairs, dice=dice, stage=bench.environment.stage)
                for model, arm in zip(names, arms, strict=True)
            }
    publish(
        claim="Sandbox, heartbeat and agent shift a cell's p50 by less than 0.5 %.",
        seed=options.seed,
        figures={"level": confinement.find_available_level(), "models": found},
    )


def measure(launcher: Launcher, arm: PreparedArm, *, pairs: int, dice: random.Random, stage: Path) -> dict[str, Any]:
    """The ratio inside / outside of one model, with its interval."""
    order = {**make_runner_order(arm, "sample"), "budget": make_budget_part(Budget.QUICK), "core": choose_core()}
    ways: dict[str, Launch] = {
        "inside": lambda folder, started: inside(launcher, arm, {**order, "turns": folder}, started),
        "outside": lambda folder, started: outside(arm, {**order, "turns": folder}, stage=stage),
    }
    found = []
    for _ in range(pairs):
        places = dice.sample(list(ways), 2)
        launches = [(ways[place], arm.scratch / f"turns-{place}") for place in places]
        with heartbeats(arm):
            answers = interleave_processes(launches, dice=dice, limit_s=LIMIT_S)
        p50 = {place: p50_of(answer) for place, answer in zip(places, answers, strict=True)}
        found.append((p50["outside"], p50["inside"]))
    judged = verdicts.judge_pairs(found, margin=TARGET, looks=(pairs,))
    return {
        "pairs": pairs,
        "p50_ms": {place: round(statistics.median(one), 5) for place, one in zip(("outside", "inside"), zip(*found))},  # noqa: B905
        "inside_by_outside": judged.ratio,
        "ci": [judged.ci_low, judged.ci_high],
        "ci_level": judged.ci_level,
        "is_met": judged.ratio is not None and abs(judged.ratio - 1) < TARGET,
    }


def inside(
    launcher: Launcher, arm: PreparedArm, order: dict[str, Any], on_started: Callable[[RunningChild], None]
) -> Answer:
    """As a node measures it."""
    return launcher.launch(arm, order, work_dir=arm.scratch, on_started=on_started)


def outside(arm: PreparedArm, order: dict[str, Any], *, stage: Path) -> Answer:
    """The runner by itself."""
    environment = {"PATH": os.environ["PATH"], "ORT_DISABLE_TELEMETRY": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(arm.installed.python), "-I", str(stage)],
        input=json.dumps(order).encode(),
        capture_output=True,
        env=environment,
        cwd=arm.scratch,
        check=True,
    )
    return Answer(reply=json.loads(done.stdout))


def p50_of(answer: Answer) -> float:
    """p50 in ms. Raises SystemExit with the reason why there is none."""
    if answer.reason is not None:
        raise SystemExit(answer.reason.text)
    return float(answer.reply["sample"]["p50_ms"])


class _Heart(BaseHTTPRequestHandler):
    """Answers every heartbeat."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"lease_s": LEASE_S}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: stdout holds the figures."""


@contextmanager
def heartbeats(arm: PreparedArm) -> Iterator[None]:
    """The agent's own lease thread, against a server in this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Heart)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lease = Lease(order=BlockOrder(block="shift", attempt=1, arms=(arm.order,)), token="token", lease_s=LEASE_S)
    try:
        with Gateway(f"http://127.0.0.1:{server.server_port}", secret="secret") as gateway, LeaseKeeper(gateway, lease):
            yield
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()

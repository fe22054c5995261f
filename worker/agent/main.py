"""The agent as a process: `python -m worker.agent.main`, and what `onnxfarm node start` calls."""

import argparse
import contextlib
import logging
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from celery.exceptions import SecurityWarning

from farm.rules.runtimes import distributions
from farm.sandbox import unconfined
from worker.agent import logs
from worker.agent.agent import IDLE_PROBE_S, Agent
from worker.agent.equipment import NodeEquipment
from worker.agent.home import NodeHome, NotEnrolledError, default_folder
from worker.agent.line import enrolment
from worker.agent.line import gateway as farm
from worker.agent.line.lan import VARIABLE, DirectLine
from worker.agent.machine import facts

logger = logging.getLogger(__name__)

CODE_VARIABLE = "ONNXFARM_NODE_TOKEN"
PACKAGES_VARIABLE = "ONNXFARM_NODE_ALLOWED_PACKAGES"
# how long an agent that starts together with its farm waits for it
FARM_STARTS_S = 60.0
EXIT_USAGE, EXIT_INFRASTRUCTURE = 2, 3


def machine_name() -> str:
    """This machine's name as a farm takes it."""
    name = re.sub(r"[^A-Za-z0-9 ._-]", "-", platform.node().split(".")[0])[:64]
    if name.isdecimal():
        return f"node-{name}"
    return name if re.match(r"[A-Za-z0-9]", name) else "node"


def start(
    folder: Path,
    *,
    url: str | None = None,
    probe_first: tuple[str, ...] = (),
    idle_probe_s: float = IDLE_PROBE_S,
    allowed: Sequence[str] = (),
) -> int:
    """Runs the agent of a home folder until it is stopped; gives the exit status.

    `url` overrides the address that the node was enrolled at; `probe_first` are providers to prove before the first
    block, and after `idle_probe_s` seconds without one (0: never) others are tried. `allowed`: packages beyond the
    known distributions that its owner lets it install, with those of $ONNXFARM_NODE_ALLOWED_PACKAGES.
    Raises NotEnrolledError and ValueError.
    """
    home = NodeHome(folder)
    identity = home.identity()
    packages = distributions.read_names(",".join([*allowed, os.environ.get(PACKAGES_VARIABLE, "")]))
    _go_on_without_a_sandbox()
    # Celery says the same in ten lines
    warnings.filterwarnings("ignore", category=SecurityWarning)
    broker = os.environ.pop(VARIABLE, "")
    line = DirectLine(broker) if broker else None
    with farm.Gateway(url or identity.url) as gateway, contextlib.closing(line) if line else contextlib.nullcontext():
        tail = logs.set_up(home.log)
        if os.geteuid() == 0:
            logger.warning("The agent runs as root; an ordinary user is enough and safer.")
        if packages:
            logger.warning("Its owner allows packages beyond the known distributions: %s", ", ".join(sorted(packages)))
        equipment = NodeEquipment(home, gateway, probe_first=probe_first, allowed=packages)
        return Agent(home, gateway=gateway, equipment=equipment, tail=tail, idle_probe_s=idle_probe_s, line=line).run()


def _go_on_without_a_sandbox() -> None:
    """The farm sends a node where none holds its owner's models only, and its own self-test is no stranger's."""
    unconfined.accept(lambda why: logger.warning("Models run with all rights of this agent. %s", why))


def main() -> int:
    """Enrols with the code of the environment where there is no node yet, then starts it."""
    parser = argparse.ArgumentParser(prog="worker.agent.main", description="A node's agent.")
    parser.add_argument("--home", type=Path, default=default_folder())
    parser.add_argument("--url", help="address of the farm's gateway")
    parser.add_argument("--probe", action="append", default=[], help="a provider to prove before the first block")
    parser.add_argument("--idle-probe-s", type=float, default=IDLE_PROBE_S, help="0: try no other providers")
    parser.add_argument("--allow-package", action="append", default=[], help="a package beyond the known distributions")
    options = parser.parse_args()
    home, code = NodeHome(options.home), os.environ.pop(CODE_VARIABLE, None)
    _go_on_without_a_sandbox()
    try:
        if code and not home.is_enrolled:
            _enrol(home, url=options.url or "", code=code)
        return start(
            options.home,
            url=options.url,
            probe_first=tuple(options.probe),
            idle_probe_s=options.idle_probe_s,
            allowed=options.allow_package,
        )
    except (NotEnrolledError, ValueError) as problem:
        print(f"onnxfarm: {problem}", file=sys.stderr)
        return EXIT_USAGE
    except farm.GatewayError as problem:
        print(f"onnxfarm: {problem}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE


def _enrol(home: NodeHome, *, url: str, code: str) -> None:
    """Waits for a farm that is still starting. Raises GatewayError, ValueError."""
    known = facts.read_facts(busy_window_s=0)
    deadline = time.monotonic() + FARM_STARTS_S
    while True:
        try:
            enrolment.enrol_by_host_name(home, url=url, code=code, name=machine_name(), facts=known)
            return
        except farm.Unavailable:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())

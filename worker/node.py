"""Runs a node's agent as a process: `python -m worker.node`.

The agent does not import the workshop. The workshop's search for the first operator whose outputs differ is passed in
here and by `onnxfarm node start`.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from farm.workshop.divergence import find_first_divergence
from worker.agent import main as agent
from worker.agent.agent import IDLE_PROBE_S
from worker.agent.connection import enrolment, gateway
from worker.agent.home import AlreadyRunningError, NodeHome, NotEnrolledError, default_folder
from worker.agent.machine import facts

CODE_VARIABLE = "ONNXFARM_NODE_TOKEN"
# an agent may start before its farm is up, and tries to enrol for this long
FARM_START_TIMEOUT_S = 60.0
EXIT_USAGE, EXIT_INFRASTRUCTURE = 2, 3


def main() -> int:
    """Enrol with the code of $ONNXFARM_NODE_TOKEN unless the folder holds a node, run the agent, and return its status.

    The node gets this machine's name. While the farm is starting, enrolling is tried for FARM_START_TIMEOUT_S seconds.
    The status is EXIT_USAGE without an enrolment, for an invalid address or index name, or while another agent uses the
    folder. It is EXIT_INFRASTRUCTURE where the gateway refuses the enrolment or does not answer. Otherwise it is that
    of `Agent.run`. The variable is removed from the environment.
    """
    parser = argparse.ArgumentParser(prog="worker.node", description="A node's agent.")
    parser.add_argument("--home", type=Path, default=default_folder())
    parser.add_argument("--url", help="address of the farm's gateway")
    parser.add_argument("--probe", action="append", default=[], help="a provider to prove before the first block")
    parser.add_argument("--idle-probe-s", type=float, default=IDLE_PROBE_S, help="0: try no other providers")
    parser.add_argument("--allow-package", action="append", default=[], help="a package beyond the known distributions")
    parser.add_argument("--allow-index", action="append", default=[], help="an index of the farm's admin")
    options = parser.parse_args()
    home, code = NodeHome(options.home), os.environ.pop(CODE_VARIABLE, None)
    agent.continue_without_sandbox()
    try:
        if code and not home.is_enrolled:
            _enrol(home, url=options.url or "", code=code)
        return agent.start(
            options.home,
            search=find_first_divergence,
            url=options.url,
            probe_first=tuple(options.probe),
            idle_probe_s=options.idle_probe_s,
            allowed=options.allow_package,
            indexes=options.allow_index,
        )
    except (NotEnrolledError, AlreadyRunningError, ValueError) as problem:
        print(f"onnxfarm: {problem}", file=sys.stderr)
        return EXIT_USAGE
    except gateway.GatewayError as problem:
        print(f"onnxfarm: {problem}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE


def _enrol(home: NodeHome, *, url: str, code: str) -> None:
    """Enrol under this machine's name, and try again while the farm is starting. Raises GatewayError, ValueError."""
    machine_facts = facts.read_facts(busy_window_s=0)
    deadline = time.monotonic() + FARM_START_TIMEOUT_S
    while True:
        try:
            enrolment.enrol_by_host_name(home, url=url, code=code, name=agent.make_node_name(), facts=machine_facts)
            return
        except gateway.UnavailableError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())

"""Starts the agent, for `python -m worker.node` and `onnxfarm node start`."""

import contextlib
import logging
import os
import platform
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

from celery.exceptions import SecurityWarning

from farm.rules.quality.looks import Search
from farm.rules.runtimes import distributions
from farm.rules.runtimes.indexes import read_name
from farm.sandbox import unconfined
from farm.sandbox.privacy import make_private
from worker.agent import logs
from worker.agent.agent import IDLE_PROBE_S, Agent
from worker.agent.connection import gateway as farm
from worker.agent.connection.lan import VARIABLE, BrokerConnection
from worker.agent.equipment import NodeEquipment
from worker.agent.home import NodeHome

logger = logging.getLogger(__name__)

PACKAGES_VARIABLE, INDEXES_VARIABLE = "ONNXFARM_NODE_ALLOWED_PACKAGES", "ONNXFARM_NODE_ALLOWED_INDEXES"


def make_node_name(host: str | None = None) -> str:
    """Make a node name that a farm accepts from a host name; None: this machine's.

    The name is the part before the first dot, at most 64 characters, with dashes for characters that a name may not
    have. A number becomes `node-NUMBER`, and a name that does not begin with a letter or digit becomes `node`.
    """
    name = re.sub(r"[^A-Za-z0-9 ._-]", "-", (platform.node() if host is None else host).split(".")[0])[:64]
    if name.isdecimal():
        return f"node-{name}"
    return name if re.match(r"[A-Za-z0-9]", name) else "node"


def start(
    folder: Path,
    *,
    search: Search,
    url: str | None = None,
    probe_first: tuple[str, ...] = (),
    idle_probe_s: float = IDLE_PROBE_S,
    allowed: Sequence[str] = (),
    indexes: Sequence[str] = (),
) -> int:
    """Run the agent of a home folder until it is stopped, and return the exit status.

    `search` finds the first operator whose outputs differ (farm.rules.quality.looks). `url` replaces the address of the
    enrolment. `probe_first`: providers to probe before the first block; after `idle_probe_s` seconds without a block,
    further ones are probed (0: never). `allowed`: packages that the owner allows in addition to the known
    distributions; those of $ONNXFARM_NODE_ALLOWED_PACKAGES are added. `indexes`: the farm's own indexes that the owner
    allows; those of $ONNXFARM_NODE_ALLOWED_INDEXES are added. Where $ONNXFARM_NODE_BROKER has an address, messages come
    from that broker. Raises NotEnrolledError, AlreadyRunningError, and ValueError for an address or a name that cannot
    be used.
    """
    make_private(folder)
    home = NodeHome(folder)
    identity = home.load_identity()
    packages = distributions.read_names(",".join([*allowed, os.environ.get(PACKAGES_VARIABLE, "")]))
    named = [*indexes, *os.environ.get(INDEXES_VARIABLE, "").replace(",", " ").split()]
    allowed_indexes = [read_name(name) for name in named]
    continue_without_sandbox()
    # the agent logs its own warning about root below, where Celery would print ten lines
    warnings.filterwarnings("ignore", category=SecurityWarning)
    broker_url = os.environ.pop(VARIABLE, "")
    broker = BrokerConnection(broker_url) if broker_url else None
    with (
        home.hold(),
        farm.Gateway(url or identity.url) as gateway,
        contextlib.closing(broker) if broker else contextlib.nullcontext(),
    ):
        tail = logs.configure_logging(home.log)
        if os.geteuid() == 0:
            logger.warning("The agent runs as root; an ordinary user is enough and safer.")
        if packages:
            logger.warning("Its owner allows packages beyond the known distributions: %s", ", ".join(sorted(packages)))
        equipment = NodeEquipment(
            home, gateway, search=search, probe_first=probe_first, allowed=packages, indexes=allowed_indexes
        )
        agent = Agent(home, gateway=gateway, equipment=equipment, tail=tail, idle_probe_s=idle_probe_s, broker=broker)
        return agent.run()


def continue_without_sandbox() -> None:
    """Let models run without a sandbox where this machine has none, and log that as a warning."""
    # without a sandbox, a node gets only models of its owner, and the self-test runs the agent's own model
    unconfined.accept_unconfined(lambda reason: logger.warning("Models run with all rights of this agent. %s", reason))

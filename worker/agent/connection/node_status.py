"""Reads the status of a node: from its own folder, and from the farm."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from worker.agent.abilities import probes
from worker.agent.connection import gateway as farm
from worker.agent.home import Identity, NodeHome
from worker.agent.installation.runtimes import RuntimeStore


@dataclass(frozen=True)
class NodeStatus:
    """The status of a node, as its own folder and the farm have it."""

    identity: Identity
    home: Path
    # the id of the agent's process; None while none runs
    process: int | None
    is_ready: bool
    # what the farm says of the node; None where it could not be asked
    farm_answer: str | None
    # whether the farm knows the node; False also where it was not asked or did not answer
    is_known: bool
    # why asking the farm failed; None where it did not fail, or where a node without a secret did not ask
    problem: str | None
    # reports that the farm has not answered yet
    waiting_reports: int
    # how many runtimes are installed
    runtimes: int
    # sorted tags that probes of installed builds have proven, without the CPU's
    proven: tuple[str, ...]

    def list_rows(self) -> list[tuple[str, str]]:
        """List the status for a person, as pairs of a label and a text. `problem` and `is_known` are left out."""
        return [
            ("node", f"{self.identity.name} (number {self.identity.node_id} of {self.identity.url})"),
            ("fingerprint", self.identity.fingerprint),
            ("folder", str(self.home)),
            ("agent", self._describe_agent()),
            ("farm", self.farm_answer or "not asked"),
            ("reports waiting", str(self.waiting_reports)),
            ("runtimes", str(self.runtimes)),
            ("proven beside the CPU", ", ".join(self.proven) or "nothing yet"),
        ]

    def as_plain(self) -> dict[str, object]:
        """Return the status as plain values. `farm` is None when the farm could not be asked."""
        return {
            "name": self.identity.name,
            "id": self.identity.node_id,
            "url": self.identity.url,
            "fingerprint": self.identity.fingerprint,
            "folder": str(self.home),
            "process": self.process,
            "is_ready": self.is_ready,
            "farm": self.farm_answer,
            "is_known": self.is_known,
            "problem": self.problem,
            "waiting_reports": self.waiting_reports,
            "runtimes": self.runtimes,
            "proven": list(self.proven),
        }

    def _describe_agent(self) -> str:
        if self.process is None:
            return "not running"
        return f"running, process {self.process}" + ("" if self.is_ready else ", not ready yet")


def read_status(home: NodeHome, *, url: str | None = None) -> NodeStatus:
    """Read the home folder and ask the farm, at `url` or at the address of the enrolment.

    Where asking fails, the status has the `problem`. A node without a valid secret does not ask the farm, and
    `farm_answer` says so. Raises NotEnrolledError where the folder holds no node, and ValueError for an address that
    `check_url` refuses, if the farm is asked.
    """
    identity = home.load_identity()
    answer = _ask_farm(home, url or identity.url)
    process = home.find_running_agent()
    if home.load_secret() is None and process is not None:
        answer = _FarmAnswer("waits for approval by its fingerprint")
    return NodeStatus(
        identity=identity,
        home=home.folder,
        process=process,
        is_ready=(home.folder / "ready").exists(),
        farm_answer=answer.text,
        is_known=answer.is_known,
        problem=answer.problem,
        waiting_reports=len(list(home.spool.glob("*.json"))) if home.spool.is_dir() else 0,
        runtimes=len(RuntimeStore(home.folder / "runtimes").list_installed()),
        proven=tuple(sorted(probes.load_proven(home.folder).tags)),
    )


class _FarmAnswer(NamedTuple):
    """What the farm says of the node; `text` is None, and `problem` says why, where it could not be asked."""

    text: str | None
    is_known: bool = False
    problem: str | None = None


def _ask_farm(home: NodeHome, url: str) -> _FarmAnswer:
    grant = home.load_secret()
    if grant is None:
        return _FarmAnswer("waits for approval, or was never started: it has no secret")
    try:
        with farm.Gateway(url, secret=grant.secret) as gateway:
            sentence = gateway.fetch_status().sentence
    except farm.NodeUnknownError as problem:
        return _FarmAnswer(f"refused: {problem}")
    except farm.RejectedError as problem:
        # an older farm answers 404 for this address; any other status is not a farm's
        if problem.status == 404:
            return _FarmAnswer("knows this node", is_known=True)
        return _FarmAnswer(None, problem=f"{url}: {problem}")
    except farm.GatewayError as problem:
        return _FarmAnswer(None, problem=f"The farm at {url} is not responding: {problem}")
    return _FarmAnswer(f"knows this node. {sentence}".strip(), is_known=True)

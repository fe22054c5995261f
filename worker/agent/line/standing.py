"""Where a node stands: what its own folder knows, and what the farm answers to it now."""

import os
from dataclasses import dataclass
from pathlib import Path

from worker.agent.abilities import probes
from worker.agent.home import Identity, NodeHome
from worker.agent.kit.runtimes import RuntimeStore
from worker.agent.line import gateway as farm

NO_FILE = "0" * 64


@dataclass(frozen=True)
class Standing:
    """`farm_says` is None when the farm could not be asked; `problem` says why."""

    identity: Identity
    home: Path
    process: int | None
    farm_says: str | None
    problem: str | None
    waiting_reports: int
    runtimes: int
    proven: tuple[str, ...]

    def rows(self) -> list[tuple[str, str]]:
        """Label and value, as they are shown."""
        return [
            ("node", f"{self.identity.name} (number {self.identity.node_id} of {self.identity.url})"),
            ("fingerprint", self.identity.fingerprint),
            ("folder", str(self.home)),
            ("agent", f"running, process {self.process}" if self.process else "not running"),
            ("farm", self.farm_says or "not asked"),
            ("reports waiting", str(self.waiting_reports)),
            ("runtimes", str(self.runtimes)),
            ("proven beside the CPU", ", ".join(self.proven) or "nothing yet"),
        ]


def read(home: NodeHome, *, url: str | None = None) -> Standing:
    """Reads the folder and asks the farm. Raises NotEnrolledError."""
    identity = home.identity()
    said, problem = _asked(home, url or identity.url)
    return Standing(
        identity=identity,
        home=home.folder,
        process=_process(home.folder / "ready"),
        farm_says=said,
        problem=problem,
        waiting_reports=len(list(home.spool.glob("*.json"))) if home.spool.is_dir() else 0,
        runtimes=len(RuntimeStore(home.folder / "runtimes").installed()),
        proven=tuple(sorted(probes.kept(home.folder).tags)),
    )


def _asked(home: NodeHome, url: str) -> tuple[str | None, str | None]:
    """Asks for a file that nobody has: a farm that knows this node says so, and no message is taken for it."""
    grant = home.secret()
    if grant is None:
        return "waits for approval, or was never started: it has no secret", None
    try:
        with farm.Gateway(url, secret=grant.secret) as gateway:
            next(gateway.file(NO_FILE, token=""), None)
    except farm.Refused as problem:
        return f"refused: {problem}", None
    except (farm.Rejected, farm.Stale):
        return "knows this node", None
    except farm.GatewayError as problem:
        return None, f"The farm at {url} does not answer: {problem}"
    return "knows this node", None


def _process(ready: Path) -> int | None:
    try:
        process = int(ready.read_text())
        os.kill(process, 0)
    except (OSError, ValueError):
        return None
    return process

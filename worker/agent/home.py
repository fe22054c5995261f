"""A node's own folder: who it is, its secret, reports not answered yet, installed runtimes, cached artifacts.

node.json   address of the farm, id, name, private key (0600)
secret.json the bearer secret that is valid now (0600)
spool/      reports the farm has not answered yet
running     locked by the agent that uses this folder; contains its process id
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from farm.base.private_files import write_private_file
from farm.contract.node import SecretGrant

ENVIRONMENT_NAME = "ONNXFARM_NODE_HOME"
RUNNING = "running"


class NotEnrolledError(RuntimeError):
    """The folder holds no node yet, or its node.json is invalid."""


class Identity(BaseModel):
    """The identity of this node on its farm."""

    url: str
    node_id: str
    name: str
    private_key: str
    fingerprint: str


def default_folder() -> Path:
    """Return the folder of a node where no --home is given: $ONNXFARM_NODE_HOME, or one in the user's data folder."""
    chosen = os.environ.get(ENVIRONMENT_NAME)
    if chosen:
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "onnxfarm-node"


class AlreadyRunningError(RuntimeError):
    """Another agent uses the folder."""


@dataclass(frozen=True)
class NodeHome:
    """The files of one node. `is_enrolled` says whether node.json is there, be it valid or not.

    The folder, `spool` and `log` may not exist yet.
    """

    folder: Path

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    @property
    def log(self) -> Path:
        return self.folder / "agent.log"

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the folder for this process inside the `with`; the lock of a process that dies is released.

        It does not wait: raises AlreadyRunningError while another agent holds it. The folder must be there.
        """
        with (self.folder / RUNNING).open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyRunningError(
                    f"An agent of {self.folder} runs already (process {self.find_running_agent() or 'unknown'}); "
                    "end it first, or choose another folder with --home."
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def find_running_agent(self) -> int | None:
        """Return the process id of the agent that holds the folder; None when none does, or its id cannot be read."""
        try:
            with (self.folder / RUNNING).open("r") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(file.read() or 0) or None
        except (OSError, ValueError):
            pass
        return None

    @property
    def is_enrolled(self) -> bool:
        return (self.folder / "node.json").exists()

    def load_identity(self) -> Identity:
        """Read node.json. Raises NotEnrolledError where it is missing or invalid."""
        path = self.folder / "node.json"
        try:
            return Identity.model_validate_json(path.read_text())
        except FileNotFoundError:
            raise NotEnrolledError(
                f"{self.folder} holds no node; join a farm first: onnxfarm node enroll URL --token CODE."
            ) from None
        except ValidationError as problem:
            raise NotEnrolledError(f"{path} cannot be read; move it away and enrol again.") from problem

    def store_identity(self, identity: Identity) -> None:
        write_private_file(self.folder / "node.json", identity.model_dump_json(indent=2))

    def load_secret(self) -> SecretGrant | None:
        """Read secret.json. Return None where it is missing or invalid, or where the secret has expired."""
        try:
            grant = SecretGrant.model_validate_json((self.folder / "secret.json").read_text())
        except (FileNotFoundError, ValidationError):
            return None
        return grant if grant.expires_at > datetime.now(UTC) else None

    def store_secret(self, grant: SecretGrant) -> None:
        write_private_file(self.folder / "secret.json", grant.model_dump_json())

"""A private PostgreSQL cluster in a temporary folder, for tests and for the chaos harness.

`python -m tests.postgres COMMAND…` runs a command with ONNXFARM_TEST_DATABASE_URL naming such a cluster, and ends with
the command's exit status; 77, with the reason in a sentence, where there is no PostgreSQL to start.

The server listens on a Unix socket alone. `initdb` and `postgres` refuse to run as root: started by root, they run as
`postgres` or `nobody`.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

USER = "farm"
# Debian keeps the server's programs off PATH, a folder a version
DEBIAN = Path("/usr/lib/postgresql")
UNPRIVILEGED = ("postgres", "nobody")
START_S = 30.0
# dynamic shared memory by mmap: containers often have little of /dev/shm
SETTINGS = {
    "listen_addresses": "", "shared_buffers": "64MB", "max_connections": "200", "dynamic_shared_memory_type": "mmap",
}  # fmt: skip
CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
SKIPPED = 77


class NoPostgresError(RuntimeError):
    """PostgreSQL cannot be started here; the text says why and what to do."""


class Cluster:
    """`with Cluster() as cluster: … cluster.url`. `durable` False: no fsync, for tests that are thrown away.

    `environment` is added to the server's, `settings` to its command line. With `keep` the files stay in that folder,
    and are used again.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        environment: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
        keep: Path | None = None,
    ) -> None:
        self._programs = programs()
        self._settings = {**SETTINGS, **({} if durable else CARELESS), **(settings or {})}
        self._is_kept = keep is not None
        self._environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", **(environment or {})}
        self.folder = keep or Path(tempfile.mkdtemp(prefix="onnxfarm-pg-"))
        self.log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the database `farm` in it, as ONNXFARM_DATABASE_URL takes it."""
        return f"postgresql://{USER}@/{USER}?host={self.folder}"

    @property
    def pid(self) -> int:
        """The running server's first process."""
        if self._process is None:
            raise NoPostgresError("PostgreSQL is not running.")
        return self._process.pid

    @property
    def command(self) -> list[str]:
        """The server's command line."""
        words = ["-D", str(self.folder / "data"), "-k", str(self.folder)]
        words += [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), *words]

    @property
    def process_options(self) -> dict[str, Any]:
        """Whose process the server is, in which environment: keywords of subprocess.Popen."""
        return {**_identity(), "env": self._environment, "cwd": self.folder}

    def make(self) -> None:
        """Creates the files and the database, unless they were kept, and leaves the server running."""
        self.folder.mkdir(exist_ok=True)
        identity = _identity()
        if identity:
            # the group stays ours, so that we reach the socket also from within a user namespace
            os.chown(self.folder, identity["user"], os.getgid())
        self.folder.chmod(0o770)
        if (self.folder / "data").exists():
            self.start()
            return
        initdb = [str(self._programs / "initdb"), "-D", str(self.folder / "data"), "--auth=trust", "-U", USER]
        self._run([*initdb, "--encoding=UTF8", "--no-locale", "--no-sync"])
        self.start()
        self._run([str(self._programs / "createdb"), "-h", str(self.folder), "-U", USER, USER])

    def start(self) -> None:
        """Starts the server and waits until it takes connections."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, **self.process_options
            )
        limit = time.monotonic() + START_S
        ready = [str(self._programs / "pg_isready"), "-q", "-h", str(self.folder)]
        while subprocess.run(ready, check=False, env=self._environment).returncode:
            if self._process.poll() is not None or time.monotonic() > limit:
                raise NoPostgresError(f"PostgreSQL did not start: {self.log.read_text(errors='replace')[-1000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the server at once, connections included; one whose files are kept writes down what it holds first."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT if self._is_kept else signal.SIGQUIT)
            self._process.wait(10 * START_S if self._is_kept else START_S)
            self._process = None

    def remove(self) -> None:
        if not self._is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.make()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.remove()

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, check=False, capture_output=True, text=True, **self.process_options)
        if done.returncode:
            raise NoPostgresError(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout)[-1000:]}")


def programs() -> Path:
    """The folder of the server's programs. Raises NoPostgresError."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    newest = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parents[1].name))
    if not newest:
        raise NoPostgresError("There is no PostgreSQL here: no initdb on PATH; install Debian's package postgresql.")
    return newest[-1].parent


def _identity() -> dict[str, Any]:
    """Whose processes the server's are: ours, or, for root, those of somebody without rights."""
    if os.geteuid() != 0:
        return {}
    for name in UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            person = pwd.getpwnam(name)
            return {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": []}
    raise NoPostgresError("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody.")


def main() -> int:
    if len(sys.argv) < 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    # so that the cluster is stopped and removed however the command's time runs out
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with Cluster() as cluster:
            environment = os.environ | {"ONNXFARM_TEST_DATABASE_URL": cluster.url}
            return subprocess.run(sys.argv[1:], check=False, env=environment).returncode
    except NoPostgresError as problem:
        sys.stderr.write(f"skipped: {problem}\n")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())

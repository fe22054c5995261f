"""An aarch64 node on an x86-64 machine, by qemu's user mode: it joins, is seen to be emulated, takes `arm` blocks.

Real aarch64 wheels in a Debian arm64 root. Emulation is slow, so one small model, one cell and its twin. As root:

    apt-get install qemu-user-static mmdebstrap
    python -m tests.acceptance.long_arm --root /var/tmp/onnxfarm-arm64

prints one JSON line and exits 1 where something is not as it should be, 2 where this machine cannot do it. The root is
kept and used again.
"""

import argparse
import contextlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import LiveFarm, accepted, live_farm

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests" / "models" / "relu_op13_ir7.onnx"
QEMU = "qemu-aarch64-static"
BINFMT = Path("/proc/sys/fs/binfmt_misc")
PACKAGES = (
    "python3,python3-venv,tzdata,libseccomp2,libgomp1,libstdc++6,zlib1g,ca-certificates,coreutils,util-linux,libc-bin"
)
# ONNX Runtime from 1.28 reads what a processor is from here; a core of a common Arm server
CPUINFO = """processor	: {number}
BogoMIPS	: 243.75
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
CPU revision	: 1

"""
# everything is some twenty times slower
JOINED_S, READY_S, MEASURED_S = 300.0, 600.0, 1200.0


def missing() -> list[str]:
    """What this machine lacks, a sentence each."""
    found = []
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        found.append("This is for Linux on x86-64; on an Arm machine start a node there.")
    if os.geteuid() != 0:
        found.append("It needs root, for a root folder of another architecture and mounts of its own.")
    found += [
        f"{name} is not on PATH: apt-get install {package}."
        for name, package in ((QEMU, "qemu-user-static"), ("mmdebstrap", "mmdebstrap"), ("unshare", "util-linux"))
        if shutil.which(name) is None
    ]
    return found


@contextlib.contextmanager
def binaries_understood() -> Iterator[None]:
    """The kernel starts qemu for aarch64 programs; what was not there before is taken away again."""
    if not (BINFMT / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "none", str(BINFMT)], check=True)
    ours = BINFMT / "onnxfarm-aarch64"
    if not ours.exists() and not (BINFMT / "qemu-aarch64").exists():
        magic = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
        mask = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
        # F: opened now, so that it is found from inside the root
        rule = f":{ours.name}:M::{magic}:{mask}:{shutil.which(QEMU)}:F"
        (BINFMT / "register").write_text(rule)
    try:
        yield
    finally:
        if ours.exists():
            ours.write_text("-1")


class EmulatedMachine:
    """A Debian arm64 root with the node's code and wheels; commands run inside it, in mounts of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def make(self) -> None:
        """Packages are unpacked only: none of their scripts runs under emulation. Then the code and its wheels."""
        if not (self.folder / "usr" / "bin" / "python3").exists():
            subprocess.run(
                [
                    *("mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--architectures=arm64"),
                    *("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", f"--include={PACKAGES}"),
                    *("bookworm", str(self.folder)),
                ],
                check=True,
            )
        self._write_system_files()
        code = self.folder / "opt" / "onnxfarm"
        shutil.rmtree(code, ignore_errors=True)
        for name in ("farm", "worker", "onnxfarm"):
            shutil.copytree(ROOT / name, code / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.rmtree(self.folder / "node", ignore_errors=True)
        if not (self.folder / "opt" / "venv" / "bin" / "python").exists():
            self.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "/opt/venv"], within_s=JOINED_S)
            self._install()
        self._compile()

    def command(self, argv: list[str]) -> list[str]:
        """The command line that runs `argv` inside: its own mounts, this machine's network, a clean environment."""
        inside = shlex.join(
            [
                *("chroot", str(self.folder), "/usr/bin/env", "-i", "PATH=/opt/venv/bin:/usr/bin:/bin"),
                *("HOME=/root", "LANG=C.UTF-8", "PYTHONPATH=/opt/onnxfarm", "ONNXFARM_NODE_HOME=/node"),
                *("SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", *argv),
            ]
        )
        place = shlex.quote(str(self.folder))
        mounts = (
            f"mount -t proc proc {place}/proc && mount --bind {place}/etc/cpuinfo {place}/proc/cpuinfo"
            f" && mount --rbind /dev {place}/dev && mount --rbind /sys {place}/sys"
        )
        return ["unshare", "--mount", "--propagation", "private", "bash", "-c", f"{mounts} && exec {inside}"]

    def run(self, argv: list[str], *, within_s: float) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(self.command(argv), capture_output=True, text=True, check=False, timeout=within_s)
        if done.returncode != 0:
            raise SystemExit(f"{shlex.join(argv)} ended with {done.returncode} inside:\n{done.stdout}{done.stderr}")
        return done

    def _write_system_files(self) -> None:
        """What the packages' scripts would have made."""
        etc = self.folder / "etc"
        cores = len(os.sched_getaffinity(0))
        (etc / "cpuinfo").write_text("".join(CPUINFO.format(number=number) for number in range(cores)))
        (etc / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (etc / "group").write_text("root:x:0:\n")
        for name in ("resolv.conf", "hosts", "nsswitch.conf"):
            if Path("/etc", name).exists():
                shutil.copyfile(Path("/etc", name), etc / name)
        certificates = etc / "ssl" / "certs"
        certificates.mkdir(parents=True, exist_ok=True)
        shutil.copyfile("/etc/ssl/certs/ca-certificates.crt", certificates / "ca-certificates.crt")
        for name in ("proc", "dev", "sys", "tmp", "root"):
            (self.folder / name).mkdir(exist_ok=True)

    def _compile(self) -> None:
        """Bytecode is the same on every processor, and making it under emulation takes a minute a process."""
        if sys.version_info[:2] == (3, 11):
            places = [
                str(self.folder / name) for name in ("opt/venv/lib/python3.11", "usr/lib/python3.11", "opt/onnxfarm")
            ]
            subprocess.run([sys.executable, "-m", "compileall", "-q", "-j", "0", *places], check=False)

    def _install(self) -> None:
        """The locked set of a node, its aarch64 wheels; this machine's uv fetches them."""
        import uv

        subprocess.run(
            [
                *(uv.find_uv_bin(), "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"),
                *("--python-platform", "aarch64-manylinux_2_31", "--python-version", "3.11"),
                *("--target", str(self.folder / "opt/venv/lib/python3.11/site-packages")),
                *("-r", str(ROOT / "requirements" / "node-cpu.txt")),
            ],
            check=True,
        )


def wait_until(holds: Callable[[], bool], *, what: str, within_s: float, agent: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        if agent.poll() is not None:
            raise SystemExit(f"The agent ended with {agent.returncode} before {what}.")
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not happen within {within_s:.0f} s.")
        time.sleep(1)


def tried(farm: LiveFarm, machine: EmulatedMachine, log: Path) -> dict[str, Any]:
    """Joins, waits, measures; what came of it."""
    began = time.monotonic()
    code = accepted(farm.api("POST", "/nodes/invitations", json={}))["code"]
    node = ["python", "-m", "onnxfarm.main", "node"]
    enrol = [*node, "enroll", farm.opened.gateway_url, "--token", code, "--name", "arm"]
    machine.run(enrol, within_s=JOINED_S)
    joined_s = time.monotonic() - began
    with log.open("wb") as output:
        agent = subprocess.Popen(
            machine.command([*node, "start"]), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        wait_until(lambda: bool(_node(farm)), what="the node was listed", within_s=JOINED_S, agent=agent)
        accepted(farm.api("POST", f"/nodes/{_node(farm)['id']}/approve", json={}))
        ready = machine.folder / "node" / "ready"
        wait_until(ready.exists, what="the node was ready", within_s=READY_S, agent=agent)
        wait_until(lambda: "arm" in _node(farm)["tags"], what="it had the tag arm", within_s=READY_S, agent=agent)
        ready_s = time.monotonic() - began
        matrix = {"hardware": ["arm"], "runtime": ["1.31.1"], "threads": [1]}
        document = farm.submit(MODEL, {"budget": "quick", "matrix": matrix}, within_s=MEASURED_S)
        return {
            "joined_s": round(joined_s),
            "ready_s": round(ready_s),
            "measured_s": round(time.monotonic() - began - ready_s),
            **judged(_node(farm), document),
        }
    except SystemExit:
        print(log.read_text(errors="replace")[-3000:], file=sys.stderr)
        raise
    finally:
        agent.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            agent.wait(30)
        agent.kill()


def _node(farm: LiveFarm) -> dict[str, Any]:
    listed = farm.api("GET", "/nodes").json()
    rows = listed["items"] if isinstance(listed, dict) else listed
    return next((one for one in rows if one["name"] == "arm"), {})


def judged(node: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """What the farm knows of the node and says of the cell; `problems` is empty where all is as it should be."""
    machine = document["machine"]
    if machine.get("nodes") == {}:
        reasons = sorted({f"{cell['status']}: {(cell['reason'] or {}).get('text')}" for cell in document["cells"]})
        raise SystemExit(f"Nothing was measured. {document['sentence']} {reasons}")
    facts = machine["nodes"]["arm"] if "nodes" in machine else machine
    cell = document["cells"][0]
    verdicts = sorted({one["verdict"] for one in document["comparisons"]})
    expected = {
        "the node's architecture is aarch64": facts["arch"] == "aarch64",
        "it is marked as emulated": facts["is_emulated"] is True,
        "it has the tag arm": "arm" in node["tags"],
        "the cell was measured": cell["p50_ms"] is not None,
        "its parity counts": cell["parity"]["verdict"] == "pass",
        "its latencies are not compared": verdicts == ["not comparable"],
    }
    return {
        "arch": facts["arch"],
        "is_emulated": facts["is_emulated"],
        "sandbox": facts["sandbox"],
        "tags": sorted(node["tags"]),
        "p50_ms": cell["p50_ms"],
        "parity": cell["parity"]["verdict"],
        "comparisons": verdicts,
        "sentence": document["sentence"],
        "problems": [what for what, holds in expected.items() if not holds],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("/var/tmp/onnxfarm-arm64"), help="the arm64 root; kept")
    asked = parser.parse_args()
    if lacks := missing():
        print("\n".join(lacks), file=sys.stderr)
        return 2
    machine = EmulatedMachine(asked.root)
    with tempfile.TemporaryDirectory(prefix="onnxfarm-arm-") as folder, binaries_understood():
        machine.make()
        home = Path(folder) / "home"
        with contextlib.contextmanager(live_farm)(home, with_node=False) as farm:
            found = tried(farm, machine, Path(folder) / "agent.log")
    print(json.dumps(found))
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Makes the command line that confines a child by its policy: the launcher with its orders, and bubblewrap."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from farm.sandbox import filters, interpreters, process_calls
from farm.sandbox.policy import Level, Policy, SandboxError

LAUNCHER = Path(__file__).with_name("launcher.py")

# the parts of the system that any program needs: libraries, and the description of the machine
_SYSTEM = (
    *("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/opt/rocm", "/opt/intel", "/sys"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/os-release"),
    *("/etc/debian_version", "/etc/redhat-release", "/etc/OpenCL", "/etc/vulkan", "/etc/nsswitch.conf"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys", "/proc/filesystems", "/proc/devices"),
    *("/proc/driver", "/proc/version", "/proc/loadavg", "/dev/urandom", "/dev/random", "/dev/zero"),
)
_GPU = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps", "/dev/dri", "/dev/kfd")


def make_confined_command(argv: Sequence[str], *, policy: Policy, level: Level, cwd: Path) -> list[str]:
    """Return the command that runs `argv` by the launcher, for bubblewrap inside bwrap. This process must start it.

    Raises SandboxError where the first word of `argv` is no absolute path or the policy cannot be enforced here.
    """
    if not os.path.isabs(argv[0]):
        raise SandboxError(f"The command {argv[0]!r} is not an absolute path; give the program by its full path.")
    orders = format_launcher_orders(policy, level, starter=os.getpid())
    # do not resolve the link: a virtual environment's interpreter finds its packages by the path it was called by
    launcher = [sys.executable, "-I", "-S", str(LAUNCHER), orders, *argv]
    if level != "bubblewrap":
        return launcher
    return [*_make_bubblewrap_command(policy, cwd), *launcher]


def format_launcher_orders(policy: Policy, level: Level, *, starter: int) -> str:
    """Format the policy as the launcher's orders, a line for each path, limit and filter.

    `starter` is the id of the process that will be the launcher's parent. Raises SandboxError where a path has a line
    break or NUL, a folder to write in is a link, or no seccomp filter can be made (with level none, none is needed).
    """
    lines = [f"{kind} {_resolve_path(path)}" for kind, path in _list_paths(policy)]
    lines += [f"limit {name} {value}" for name, value in _list_limits(policy)]
    code = filters.build_seccomp_program(processes=policy.processes, devices=policy.devices)
    if code:
        lines += [f"bpf {code.hex()}", f"own {process_calls.OWN_PID}"]
    elif level != "none":
        raise SandboxError(
            "No seccomp filter can be made here; install pyseccomp and libseccomp2, or allow level none."
        )
    if level == "landlock":
        lines.append("landlock yes")
    if level != "bubblewrap":  # inside bwrap, its parent has another number
        lines.append(f"starter {starter}")
    if policy.counts is not None:
        lines.append(f"count {policy.counts}")
    return "\n".join(lines)


def _resolve_path(path: Path) -> str:
    if "\n" in str(path) or "\0" in str(path):
        raise SandboxError(f"The path {str(path)!r} holds a line break; rename it.")
    return os.path.realpath(path)


def _list_paths(policy: Policy) -> Iterator[tuple[str, Path]]:
    for name in _SYSTEM:
        yield "ro", Path(name)
    for path in policy.read_only:
        yield "ro", path
    for path in policy.listed:
        yield "list", path
    for path in policy.read_write:
        if path.is_symlink():  # an earlier child may have replaced its folder by a link
            raise SandboxError(f"The folder {str(path)!r} to write in is a link; give the folder itself.")
        yield "rw", path
    yield "dev", Path("/dev/null")
    if policy.devices:
        yield "rw", Path("/dev/shm")
        for path in (*map(Path, _GPU), *Path("/dev").glob("nvidia[0-9]*")):
            yield "dev", path


def _list_limits(policy: Policy) -> Iterator[tuple[str, int]]:
    yield "CORE", 0
    # few, because each pipe holds 64 KiB outside the child's own memory; but GPU drivers open hundreds of files a GPU
    yield "NOFILE", 4096 if policy.devices else 512
    # pending signals and timers, which the system limits for all processes of the user together
    if sys.platform == "linux":
        yield "SIGPENDING", 1024
    if policy.address_space_bytes is not None:
        yield "AS", policy.address_space_bytes
    if policy.file_bytes is not None:
        yield "FSIZE", policy.file_bytes
    if policy.cpu_s is not None:
        yield "CPU", max(1, round(policy.cpu_s))


def _make_bubblewrap_command(policy: Policy, cwd: Path) -> list[str]:
    """Make the command line of bwrap: it makes new name spaces, in which only the policy's paths exist."""
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxError("The program bwrap is not on the PATH; install bubblewrap or take level landlock.")
    words = [program, "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
    ours = (LAUNCHER, *interpreters.list_interpreter_paths(Path(sys.executable)))
    for kind, path in (*(("ro", path) for path in ours), *_list_paths(policy)):
        is_mounted_already = str(path).startswith(("/proc", "/dev/"))
        if kind == "list" or (is_mounted_already and not (policy.devices and kind != "ro")):
            continue
        option = {"ro": "--ro-bind-try", "rw": "--bind-try", "dev": "--dev-bind-try"}[kind]
        real_path = os.path.realpath(path)
        # a link also keeps its own name, because programs are called by it
        for name in dict.fromkeys((os.path.abspath(path), real_path)):
            words += [option, real_path, name]
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(cwd), "--"]

"""Confines its own process, then becomes the command. It is run by path with `python -I -S` and imports very little.

argv: this file, the orders (lines of `key value`), then the command. Orders: `ro`, `rw`, `dev` and `list` name paths,
`limit` a resource and its value, `bpf` the seccomp program in hex, `own` the word in it that is replaced by the id of
this process, `count` an event to count, `landlock` that Landlock must apply, `abi` the newest version of it to use,
`starter` the id of the parent. If anything fails, the command is not run, and the exit code is 125.
Landlock: Linux's Documentation/userspace-api/landlock.rst. seccomp: seccomp(2).
"""

import ctypes
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all the rest
    from typing import TypeAlias

EXIT_NOT_CONFINED = 125
EXIT_NOT_STARTED = 127

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_CAP_DAC_OVERRIDE = 1
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
# linux/perf_event.h: type and config of an event
_EVENTS = {"instructions": (0, 1), "task-clock": (1, 1)}
_READ_TIMES = 3  # with the count, read how long the counter was enabled and running
_USER_MODE_ALONE = 1 << 5 | 1 << 6  # exclude_kernel, exclude_hv
_SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_SPEC_ALLOW = 1, 4
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

# LANDLOCK_ACCESS_FS_*, by bit
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 7, 1 << 8, 1 << 13, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
# without the rights to make links, sockets and devices: a later reader of the folder would follow them
_WRITE = _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE
_DEVICE = _READ_FILE | _READ_DIR | _WRITE_FILE | _IOCTL_DEV
_ACCESS = {"ro": _READ, "rw": _WRITE, "dev": _DEVICE, "list": _READ_DIR}
_ON_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
# the number of file rights that each version of Landlock knows
_RIGHTS_OF_ABI = {1: 13, 2: 14, 3: 15, 4: 15}
_RIGHTS_NOW = 16
_NET_TCP = 3  # bind and connect, from version 4
_SCOPES = 3  # abstract sockets and signals, from version 6

_libc = ctypes.CDLL(None, use_errno=True)
Orders: "TypeAlias" = "dict[str, list[str]]"


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapabilitySet(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


class _Event(ctypes.Structure):
    """struct perf_event_attr of version 1, which every kernel knows."""

    _fields_ = [
        *[(name, ctypes.c_uint32) for name in ("type", "size")],
        *[(name, ctypes.c_uint64) for name in ("config", "period", "sample_type", "read_format", "flags")],
        ("wakeup", ctypes.c_uint32),
        ("bp_type", ctypes.c_uint32),
        ("config1", ctypes.c_uint64),
    ]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def _syscall(number: int, *arguments: object) -> int:
    answer: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"system call {number}: {os.strerror(code)}")
    return answer


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(ctypes.c_int(option), *(ctypes.c_ulong(word) for word in (value, 0, 0, 0))) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _drop_capabilities() -> None:
    """Let the next exec lose root's capabilities, except the one to ignore file modes, whose use the policy limits."""
    if os.geteuid() != 0:
        return
    capability = 0
    while _libc.prctl(23, ctypes.c_ulong(capability), 0, 0, 0) >= 0:  # PR_CAPBSET_READ
        if capability != _CAP_DAC_OVERRIDE and _libc.prctl(23, ctypes.c_ulong(capability), 0, 0, 0) == 1:
            _prctl(_PR_CAPBSET_DROP, capability)
        capability += 1


def drop_capabilities() -> None:
    """Give up this process's own capabilities, for a child that never calls exec (`confine` acts from exec on).

    It keeps the one to ignore file modes, if it has it. Raises OSError where the kernel refuses.
    """
    header, held = _CapabilityHeader(0x20080522, 0), (_CapabilitySet * 2)()
    if _libc.capget(ctypes.byref(header), held) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    allowed = 1 << _CAP_DAC_OVERRIDE
    for number, words in enumerate(held):
        mask = allowed if number == 0 else 0
        words.effective, words.permitted, words.inheritable = words.effective & mask, words.permitted & mask, 0
    if _libc.capset(ctypes.byref(header), held) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _set_limits(resources: list[tuple[str, int]]) -> None:
    import resource

    for name, value in resources:
        kind = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(kind)[1]
        soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # one second more, so that SIGXCPU comes before SIGKILL
        resource.setrlimit(kind, (soft, soft + 1 if name == "CPU" and hard == resource.RLIM_INFINITY else soft))


def read_landlock_version() -> int:
    """Ask the kernel for its Landlock ABI version; 0 where it has none."""
    try:
        return _syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def _allow_path(ruleset: int, path: str, access: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            access &= _ON_A_FILE
        rule = _PathRule(access, parent)
        _syscall(_LANDLOCK_ADD, ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(parent)


def _apply_landlock(paths: list[tuple[str, str]], *, newest: int) -> None:
    """Apply Landlock as far as the kernel supports it: to files, and on newer kernels to TCP, sockets and signals."""
    version = min(read_landlock_version(), newest)
    if version == 0:
        raise OSError("this kernel has no Landlock")
    handled = (1 << _RIGHTS_OF_ABI.get(version, _RIGHTS_NOW)) - 1
    rules = _Ruleset(handled, 0 if version < 4 else _NET_TCP, _SCOPES if version >= 6 else 0)
    size = 8
    if version >= 4:
        size = 16 if version < 6 else 24
    ruleset = _syscall(_LANDLOCK_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    for kind, path in paths:
        _allow_path(ruleset, path, _ACCESS[kind] & handled)
    # kept open over exec: the rule belongs to this directory entry, which the kernel may drop when nobody uses it
    process_folder = os.open(f"/proc/{os.getpid()}", os.O_PATH)
    os.set_inheritable(process_folder, True)
    _allow_path(ruleset, f"/proc/{os.getpid()}", (_READ_FILE | _READ_DIR) & handled)
    _syscall(_LANDLOCK_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def _install_filter(code: bytes, own_word: int) -> None:
    """Install the program, without the speculation barriers that would slow down what is measured."""
    process_id = os.getpid().to_bytes(4, sys.byteorder)
    word = own_word.to_bytes(4, sys.byteorder)
    code = b"".join(
        code[at : at + 4] + (process_id if code[at + 4 : at + 8] == word else code[at + 4 : at + 8])
        for at in range(0, len(code), 8)
    )
    program = _Program(len(code) // 8, code)
    number = _SECCOMP[os.uname().machine]
    flags = (ctypes.c_uint(_SECCOMP_SET_MODE_FILTER), ctypes.c_uint(_SECCOMP_FILTER_FLAG_SPEC_ALLOW))
    _syscall(number, *flags, ctypes.byref(program))


def _open_counter(event: str) -> None:
    """Open a counter of this thread in user mode, and put its descriptor into ONNXFARM_COUNTER_FD.

    Nothing happens where the system does not allow it. Call this before the filter, which denies opening counters.
    """
    kind, config = _EVENTS[event]
    event_struct = _Event(kind, ctypes.sizeof(_Event), config, 0, 0, _READ_TIMES, _USER_MODE_ALONE)
    numbers = (ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(-1), ctypes.c_ulong(0))
    try:
        opened = _syscall(_PERF_EVENT_OPEN[os.uname().machine], ctypes.byref(event_struct), *numbers)
    except (OSError, KeyError):
        return
    os.environ["ONNXFARM_COUNTER_FD"] = str(opened)


def parse_orders(text: str) -> Orders:
    """Map each key of the lines `key value` to its values, in the order of the lines."""
    orders: Orders = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        orders.setdefault(key, []).append(value)
    return orders


def confine(orders: Orders) -> None:
    """Apply the orders to this process, which cannot be undone. Raises OSError, ValueError or KeyError on failure."""
    _prctl(_PR_SET_PDEATHSIG, 9)
    # comparing with process 1 would not do: in a container, that process may be the starter. In bubblewrap's name space
    # there is no such order, and bwrap itself ends the child
    starter = orders.get("starter")
    if starter and os.getppid() != int(starter[0]):
        raise OSError(f"its parent is gone: process {starter[0]} started it, and it is a child of {os.getppid()}")
    _set_limits([(name, int(value)) for name, value in (line.split(" ") for line in orders.get("limit", []))])
    for event in orders.get("count", []):
        _open_counter(event)
    _drop_capabilities()
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if orders.get("landlock"):
        paths = [(kind, path) for kind in _ACCESS for path in orders.get(kind, [])]
        newest = int(orders.get("abi", ["99"])[0])
        _apply_landlock(paths, newest=newest)
    if orders.get("bpf"):
        _install_filter(bytes.fromhex(orders["bpf"][0]), int(orders["own"][0]))


def main() -> None:
    """Confine this process as the orders say, then become the command. On other systems than Linux nothing is confined.

    Exits with 125 where it cannot be confined and with 127 where the command cannot be started.
    """
    started_ns = time.monotonic_ns()
    orders = parse_orders(sys.argv[1])
    command = sys.argv[2:]
    try:
        if sys.platform == "linux":
            confine(orders)
    except (OSError, ValueError, KeyError) as error:
        print(f"The sandbox could not be closed: {error}", file=sys.stderr)
        os._exit(EXIT_NOT_CONFINED)
    os.environ["ONNXFARM_CONFINED_NS"] = f"{started_ns} {time.monotonic_ns()}"
    try:
        os.execve(command[0], command, os.environ)
    except OSError as error:
        print(f"The command {command[0]} could not be started: {error}", file=sys.stderr)
        os._exit(EXIT_NOT_STARTED)


if __name__ == "__main__":
    main()

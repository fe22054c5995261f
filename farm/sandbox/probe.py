"""Run by path in a confined child: it tries actions that must be refused, and answers which of them worked.

    python -I -S probe.py SECRET READABLE OUTSIDE VICTIM

SECRET is a file that the child may not read, READABLE one that it may read but not change, OUTSIDE a folder that it may
not write in, VICTIM the id of a process of the same user. An attempt that works does no harm: it sets a value that is
set already, or touches files that were made for the probe. The answer is JSON: {"tried": names, "worked": names}.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import socket
import sys
from collections.abc import Callable
from functools import partial

libc = ctypes.CDLL(None, use_errno=True)
_SETFL_ASYNC, _SIGURG = 0o20000, 23
_SEIZE = 0x4206
_NEW_USER = 0x10000000
_IPC_CREATE, _IPC_REMOVE = 0o1600, 0
_F_SETPIPE_SZ = 1031
NETWORK: dict[str, tuple[object, ...]] = {
    **{name: (bytes(16), 16) for name in ("bind", "connect")},
    **{name: (None, None) for name in ("accept", "accept4", "sendmsg", "recvmsg")},
    **{name: (None, 0, 0, None) for name in ("sendmmsg", "recvmmsg")},
    "sendto": (b"", 0, 0, bytes(16), 16),
    "listen": (1,),
}
IO_SETUP = {"x86_64": 206}.get(os.uname().machine, 0)  # asm-generic/unistd.h
# the same on every architecture
_IO_URING_SETUP, _PIDFD_OPEN, _LANDLOCK_CREATE, _MEMFD_SECRET = 425, 434, 444, 447


def check_call(answer: int) -> int:
    """Return the result of a function of the C library. Raises OSError where it is negative."""
    if answer < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return answer


def call_kernel(name: str, *words: object) -> None:
    """Call a function of the C library. Raises OSError only where a filter refused it, not where the kernel did."""
    if libc[name](*words) < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise OSError(ctypes.get_errno(), "refused")


def list_attempts(secret: str, readable: str, outside: str, victim: int) -> dict[str, Callable[[], object]]:
    """Map the name of each attempt to a function that makes it, and raises OSError where it is refused.

    Nothing is tried yet.
    """
    return {
        **_make_file_attempts(secret, readable, outside),
        **_make_planting_attempts(),
        **_make_process_attempts(victim),
        **_make_kernel_attempts(),
    }


def _make_file_attempts(secret: str, readable: str, outside: str) -> dict[str, Callable[[], object]]:
    return {
        "read a file outside": lambda: open(secret).close(),
        "list a folder outside": lambda: os.listdir(outside),
        "make a file outside": lambda: open(os.path.join(outside, "new"), "x").close(),
        "write into a file that it may only read": lambda: open(readable, "r+b").close(),
        "empty a file by its name": lambda: os.truncate(readable, 0),
        "empty a file while opening it to read": lambda: os.close(os.open(readable, os.O_RDONLY | os.O_TRUNC)),
        "empty a file while opening it for commands": lambda: os.close(os.open(readable, os.O_ACCMODE | os.O_TRUNC)),
        "open a file for commands alone": lambda: os.close(os.open(secret, os.O_ACCMODE)),
        "remove a file outside": lambda: os.unlink(secret),
        "change the mode of a file outside": lambda: os.chmod(readable, 0o600),
        "change the times of a file outside": lambda: os.utime(readable),
        "lease a file, so that others wait for it": lambda: fcntl.fcntl(
            os.open(readable, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK
        ),
        "watch a folder outside": lambda: check_call(libc.inotify_init1(0)),
    }


def _make_planting_attempts() -> dict[str, Callable[[], object]]:
    return {
        "leave a symbolic link": lambda: os.symlink("/etc/passwd", "planted-link"),
        "leave a hard link": _leave_hard_link,
        "leave a pipe": lambda: os.mkfifo("planted-pipe"),
        "leave a program with its owner's powers": lambda: os.close(
            os.open("planted-suid", os.O_CREAT | os.O_WRONLY, 0o4755)
        ),
    }


def _leave_hard_link() -> None:
    with open("planted-file", "w"):
        os.link("planted-file", "planted-hard-link")


def _make_process_attempts(victim: int) -> dict[str, Callable[[], object]]:
    return {
        "signal another process": lambda: os.kill(victim, 0),
        "have a pipe signal another process": lambda: _signal_by_pipe(victim),
        "change another process's limits": lambda: _set_limit(victim),
        "move another process to a core": lambda: os.sched_setaffinity(victim, os.sched_getaffinity(0)),
        "slow another process down": lambda: os.setpriority(os.PRIO_PROCESS, victim, 19),
        "slow all of the user down": lambda: os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_USER, 0)),
        "schedule another process": lambda: os.sched_setscheduler(victim, os.SCHED_OTHER, os.sched_param(0)),
        "trace another process": lambda: check_call(libc.ptrace(_SEIZE, victim, None, None)),
        "read another process's memory": lambda: open(f"/proc/{victim}/mem", "rb").close(),
        "read another process's environment": lambda: open(f"/proc/{victim}/environ", "rb").read(),
        "hold another process": lambda: check_call(libc.syscall(_PIDFD_OPEN, victim, 0)),
        "start a process": _start_process,
        "outlive its parent": lambda: check_call(libc.prctl(ctypes.c_ulong(1 << 32 | 1), 0, 0, 0, 0)),
    }


def _signal_by_pipe(victim: int) -> None:
    reader, _ = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETSIG, _SIGURG)
    fcntl.fcntl(reader, fcntl.F_SETOWN, victim)
    fcntl.fcntl(reader, fcntl.F_SETFL, _SETFL_ASYNC)


def _set_limit(victim: int) -> None:
    # by the C library's `prlimit`, because Python's checks the process first; the limit is not changed
    limit = (ctypes.c_uint64 * 2)()
    check_call(libc.prlimit(victim, resource.RLIMIT_CORE, None, ctypes.byref(limit)))


def _start_process() -> None:
    if os.fork() == 0:
        os._exit(0)


def _make_kernel_attempts() -> dict[str, Callable[[], object]]:
    families = ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK")
    return {
        **{f"open a socket ({name})": partial(socket.socket, getattr(socket, name)) for name in families},
        "make a pair of sockets": socket.socketpair,
        # called with a descriptor that is no socket: they fail in any case, and the error shows whether a filter did it
        **{f"ask the network by {name}": partial(call_kernel, name, 0, *words) for name, words in NETWORK.items()},
        "share memory by System V": _share_memory,
        "share a queue by System V": lambda: libc.msgctl(check_call(libc.msgget(0, _IPC_CREATE)), _IPC_REMOVE, None),
        "share a lock by System V": lambda: libc.semctl(check_call(libc.semget(0, 1, _IPC_CREATE)), 0, _IPC_REMOVE),
        "make a queue of messages": _make_queue,
        "hide memory in a file without a name": lambda: os.close(os.memfd_create("hidden")),
        "hide memory from the kernel": lambda: os.close(check_call(libc.syscall(_MEMFD_SECRET, 0))),
        "hide memory behind a shared mapping": lambda: mmap.mmap(-1, mmap.PAGESIZE).close(),
        "hide memory in a large pipe": lambda: fcntl.fcntl(os.pipe()[1], _F_SETPIPE_SZ, 1 << 17),
        "hide memory behind a thousand descriptors": lambda: [os.dup(0) for _ in range(1000)],
        "raise its limit of descriptors": _raise_limit,
        "take the machine's asynchronous input and output": lambda: check_call(
            libc.syscall(ctypes.c_long(IO_SETUP), 1, ctypes.byref(ctypes.c_ulong(0)))
        ),
        "take the user's timers": _take_timers,
        "hide memory in rules of its own": lambda: os.close(
            check_call(libc.syscall(_LANDLOCK_CREATE, ctypes.byref(ctypes.c_uint64(1)), 8, 0))
        ),
        "work through io_uring": lambda: check_call(libc.syscall(_IO_URING_SETUP, 1, (ctypes.c_uint32 * 30)())),
        "make a name space": lambda: check_call(libc.unshare(_NEW_USER)),
    }


def _raise_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    check_call(libc.prlimit(0, resource.RLIMIT_NOFILE, (ctypes.c_uint64 * 2)(hard, hard + 1), None))


def _take_timers() -> None:
    for _ in range(2000):
        check_call(libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())))


def _share_memory() -> None:
    libc.shmctl(check_call(libc.shmget(0, 4096, _IPC_CREATE)), _IPC_REMOVE, None)


def _make_queue() -> None:
    name = b"/onnxfarm-probe"
    os.close(check_call(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)))
    libc.mq_unlink(name)


def main() -> None:
    """Make every attempt, and write to the reply's pipe which of them worked."""
    secret, readable, outside, victim = sys.argv[1:]
    tried = list_attempts(secret, readable, outside, int(victim))
    worked = [name for name, attempt in tried.items() if _works(attempt)]
    os.write(int(os.environ["ONNXFARM_REPLY_FD"]), json.dumps({"tried": list(tried), "worked": worked}).encode())


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()

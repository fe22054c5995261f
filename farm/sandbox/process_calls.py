"""Filters system calls that name a process by its id: a process may name itself and no other.

A rule of libseccomp compares an argument with one value, but two values mean the caller here: 0 and its own number. So
this module writes the instructions itself, and they come before libseccomp's. Only the lower half of an argument
counts, because the kernel reads no more of an `int`. The number of a thread is refused too, because a filter cannot
know whose thread it is.
"""

import errno
import struct
from collections.abc import Callable

# a placeholder, which the launcher replaces by the child's own process number
OWN_PID = 0x5A17C0DE

# which argument of a call, from 0, is the number of a process
_NUMBERED = {
    "prlimit64": 0,
    "sched_setaffinity": 0,
    "sched_setscheduler": 0,
    "sched_setparam": 0,
    "sched_setattr": 0,
    "setpriority": 1,
    "ioprio_set": 1,
}

# linux/bpf_common.h: codes of instructions
_LOAD, _EQUALS, _ALWAYS, _RETURN = 0x20, 0x15, 0x05, 0x06
# linux/seccomp.h: places in `struct seccomp_data`
_CALL, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_DENIED = 0x00050000 | errno.EPERM


def build_instructions(find_number: Callable[[str], int], architecture: int) -> bytes:
    """Build the BPF instructions. Calls that they do not deny go on to libseccomp's, which follow them.

    `find_number` returns a system call's number by its name, negative where the architecture has no such call.
    """
    checks = [(number, place) for name, place in _NUMBERED.items() if (number := find_number(name)) >= 0]
    body = b"".join(_check(number, place) for number, place in checks)
    # another architecture's numbers mean other calls: they are left to the program behind, which ends the process
    skipped = len(body) // 8
    head = _instruction(_LOAD, value=_ARCHITECTURE) + _instruction(_EQUALS, yes=1, value=architecture)
    return head + _instruction(_ALWAYS, value=skipped) + body


def _check(number: int, place: int) -> bytes:
    return b"".join(
        [
            _instruction(_LOAD, value=_CALL),
            _instruction(_EQUALS, no=4, value=number),
            _instruction(_LOAD, value=_ARGUMENTS + 8 * place + _LOWER_HALF),
            _instruction(_EQUALS, yes=2, value=0),
            _instruction(_EQUALS, yes=1, value=OWN_PID),
            _instruction(_RETURN, value=_DENIED),
        ]
    )


def _instruction(code: int, *, yes: int = 0, no: int = 0, value: int) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


_LOWER_HALF = 0 if struct.pack("=H", 1) == b"\x01\x00" else 4

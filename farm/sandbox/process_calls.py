"""Filters system calls that name a process by its id: a process may name itself and no other.

libseccomp compares an argument with one value a rule, and these take two: 0 and the caller's own number, which both
mean the caller. So the instructions are written here, in front of libseccomp's. Only the lower half of an argument
counts, because that is all the kernel reads of an `int`. A thread's number is refused too: a filter cannot know whose
it is.
"""

import errno
import struct
from collections.abc import Callable

# Stands for the child's own process number, which the launcher writes over it.
OWN_PID = 0x5A17C0DE

# which argument is the number of a process
_NUMBERED = {
    "prlimit64": 0,
    "sched_setaffinity": 0,
    "sched_setscheduler": 0,
    "sched_setparam": 0,
    "sched_setattr": 0,
    "setpriority": 1,
    "ioprio_set": 1,
}

# linux/bpf_common.h, by its words
_LOAD, _EQUALS, _ALWAYS, _RETURN = 0x20, 0x15, 0x05, 0x06
# linux/seccomp.h: places in `struct seccomp_data`
_CALL, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_DENIED = 0x00050000 | errno.EPERM


def build_instructions(find_number: Callable[[str], int], architecture: int) -> bytes:
    """Build the BPF instructions, which come before libseccomp's: calls that they do not deny go on to those.

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

"""Builds the seccomp program with the system calls that a confined child may not make.

It is a list of what is denied, because nobody can list in advance all calls that runtimes of many years and GPU drivers
make. Denied are calls that leave the confinement (other processes, other name spaces, the network, the kernel), and
calls that Landlock does not see (modes, owners, attributes, and on older kernels truncation and commands to devices).
The program is the same on every kernel, so that an old kernel allows no more than a new one.
"""

import errno
import functools
import os
import stat
import sys
import tempfile
from types import ModuleType
from typing import TYPE_CHECKING

from farm.sandbox import process_calls
from farm.sandbox.process_calls import OWN_PID

if TYPE_CHECKING:
    from pyseccomp import SyscallFilter

# calls that every libseccomp in use knows by name
_ALWAYS = (
    # other processes
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "get_robust_list", "migrate_pages", "move_pages"),
    *("setsid", "setpgid", "tkill"),  # a grandchild must stay in the group that is killed
    # memory and queues that all processes of the user share, and that outlive the child
    *("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr"),
    # all calls of sockets: a pair of them can send to any Unix socket, and holds memory and descriptors in flight
    *("socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg"),
    *("recvmsg", "recvmmsg"),
    # memory that belongs to no process, so that the watch does not see it; and further filters
    *("vmsplice", "seccomp"),
    # resources that are limited for the whole machine
    *("io_setup",),  # fs.aio-max-nr
    # the kernel
    *("bpf", "perf_event_open", "keyctl", "add_key", "request_key", "init_module", "finit_module", "delete_module"),
    *("kexec_load", "kexec_file_load", "reboot", "syslog", "acct", "swapon", "swapoff", "quotactl", "userfaultfd"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "vhangup"),
    *("iopl", "ioperm", "lookup_dcookie", "fanotify_init", "open_by_handle_at", "name_to_handle_at"),
    # other name spaces
    *("mount", "umount2", "pivot_root", "chroot", "unshare", "setns"),
    # changes that Landlock does not see
    *("chmod", "fchmod", "fchmodat", "chown", "fchown", "fchownat", "lchown", "utime", "utimes", "futimesat"),
    *("utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
    *("truncate", "inotify_init", "inotify_init1", "inotify_add_watch"),
    # a later reader of the folder would follow a link, or wait for ever for a pipe; bubblewrap denies neither
    *("link", "linkat", "symlink", "symlinkat", "mknod", "mknodat"),
)
# calls that some versions of libseccomp do not know; their numbers are the same on every architecture
_ALWAYS_BY_NUMBER = (
    *(425, 426, 427),  # io_uring_setup, _enter, _register: a way around every other rule
    *(428, 429, 430, 431, 432, 433, 442, 467),  # open_tree, move_mount, fs…, mount_setattr, open_tree_attr
    *(424, 434, 438, 440, 448),  # pidfd_send_signal, pidfd_open, pidfd_getfd, process_madvise, process_mrelease
    *(444, 445, 446),  # landlock_create_ruleset, …: any number of rules would take memory of the kernel
    *(443, 447, 457, 458),  # quotactl_fd, memfd_secret, statmount, listmount
    *(452, 463, 466, 469),  # fchmodat2, setxattrat, removexattrat, file_setattr
)
# calls whose flags are in memory, where a filter cannot look; glibc falls back to clone and openat
_CLONE3, _OPENAT2 = 435, 437
_CLONE_THREAD = 0x00010000
_CLONE_NEW = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SCHED_CORE = 1, 22, 62
_PRIO_USER, _IOPRIO_WHO_USER = 2, 3
# asm-generic/fcntl.h: signals to another process, leases that make others wait, watches on folders, larger pipes
_FCNTL = {
    **{"F_SETOWN": 8, "F_SETSIG": 10, "F_SETOWN_EX": 15, "F_SETLEASE": 1024, "F_NOTIFY": 1026},
    **{"F_SETPIPE_SZ": 1031},
}
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
# asm-generic/ioctls.h, linux/fs.h, linux/fscrypt.h, linux/fsverity.h
_IOCTL = {
    **{"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "FIOSETOWN": 0x8901, "SIOCSPGRP": 0x8902},
    **{"FS_IOC_SETFLAGS": 0x40086602, "FS_IOC_FSSETXATTR": 0x401C5820, "FS_IOC_SET_ENCRYPTION_POLICY": 0x800C6613},
    **{"FS_IOC_ENABLE_VERITY": 0x40806685},
}
_INT = 0xFFFFFFFF  # the kernel reads only these bits of an int


@functools.cache
def build_seccomp_program(*, processes: bool, devices: bool = False) -> bytes:
    """Build the filter as raw BPF instructions for this machine; b"" without Linux, pyseccomp or libseccomp.

    `processes` allows the child to start others. `devices` allows the shared memory that GPU drivers need.
    """
    if sys.platform != "linux":
        return b""
    try:
        import pyseccomp
    except (ImportError, OSError, RuntimeError):  # pyseccomp or libseccomp is not installed
        return b""
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    denied = pyseccomp.ERRNO(errno.EPERM)
    for call in (*_ALWAYS, *_ALWAYS_BY_NUMBER):
        rules.add_rule(denied, call)
    for number in (_CLONE3, _OPENAT2):
        rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), number)
    for flag in _CLONE_NEW:
        rules.add_rule(denied, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    _deny_by_argument(rules, pyseccomp)
    _deny_opening(rules, pyseccomp)
    _deny_signals(rules, pyseccomp)
    if not processes:
        _deny_starting(rules, pyseccomp)
    if not devices:  # memory that the watch does not see either; GPU drivers may want it
        rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "memfd_create")
        shared = _MAP_SHARED | _MAP_ANONYMOUS
        rules.add_rule(denied, "mmap", pyseccomp.Arg(3, pyseccomp.MASKED_EQ, shared, shared))
    architecture = pyseccomp.system_arch()
    instructions = process_calls.build_instructions(
        lambda name: pyseccomp.resolve_syscall(architecture, name), architecture
    )
    with tempfile.TemporaryFile() as out:
        rules.export_bpf(out)
        out.seek(0)
        return instructions + out.read()


def _deny_by_argument(rules: "SyscallFilter", pyseccomp: ModuleType) -> None:
    """Deny calls that leave the confinement only if one argument has certain values."""
    denied = pyseccomp.ERRNO(errno.EPERM)
    words = [("prctl", 0, option) for option in (_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SCHED_CORE)]
    words += [("setpriority", 0, _PRIO_USER), ("ioprio_set", 0, _IOPRIO_WHO_USER)]
    words += [("fcntl", 1, command) for command in _FCNTL.values()]
    words += [("ioctl", 1, command) for command in _IOCTL.values()]
    for call, place, word in words:
        rules.add_rule(denied, call, pyseccomp.Arg(place, pyseccomp.MASKED_EQ, _INT, word))


def _deny_opening(rules: "SyscallFilter", pyseccomp: ModuleType) -> None:
    """Deny emptying a file while opening it to read, opening a file for ioctl alone, and making setuid files.

    Older versions of Landlock do not see the first two.
    """
    denied = pyseccomp.ERRNO(errno.EPERM)
    for call, flags in (("open", 1), ("openat", 2)):
        for way in (os.O_RDONLY, os.O_ACCMODE):
            mask = os.O_ACCMODE | os.O_TRUNC
            rules.add_rule(denied, call, pyseccomp.Arg(flags, pyseccomp.MASKED_EQ, mask, way | os.O_TRUNC))
        rules.add_rule(denied, call, pyseccomp.Arg(flags, pyseccomp.MASKED_EQ, os.O_ACCMODE, os.O_ACCMODE))
        for bit in (stat.S_ISUID, stat.S_ISGID):
            creates = pyseccomp.Arg(flags, pyseccomp.MASKED_EQ, os.O_CREAT, os.O_CREAT)
            rules.add_rule(denied, call, creates, pyseccomp.Arg(flags + 1, pyseccomp.MASKED_EQ, bit, bit))
    for bit in (stat.S_ISUID, stat.S_ISGID):
        rules.add_rule(denied, "creat", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, bit, bit))


def _deny_signals(rules: "SyscallFilter", pyseccomp: ModuleType) -> None:
    # Landlock denies signals only from its sixth version on
    for call in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        rules.add_rule(pyseccomp.ERRNO(errno.EPERM), call, pyseccomp.Arg(0, pyseccomp.NE, OWN_PID))


def _deny_starting(rules: "SyscallFilter", pyseccomp: ModuleType) -> None:
    """Deny to start processes: fork, vfork, and clone without the flag that makes a thread."""
    denied = pyseccomp.ERRNO(errno.EPERM)
    for call in ("fork", "vfork"):
        rules.add_rule(denied, call)
    rules.add_rule(denied, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, _CLONE_THREAD, 0))

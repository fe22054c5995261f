"""The system calls a confined child may not make, as a seccomp program built once and handed down as bytes.

A deny list: runtimes of many years, and GPU drivers, use calls nobody can list in advance; what is denied here is what
leaves the confinement (other processes, other name spaces, the network, the kernel) or what Landlock does not see
(modes, owners, attributes).
"""

import errno
import functools
import sys
import tempfile

# Calls known by name to every libseccomp in use.
_ALWAYS = (
    # other processes
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "get_robust_list", "migrate_pages", "move_pages"),
    *("setsid", "setpgid"),  # a grandchild must stay in the group that is killed
    # the kernel
    *("bpf", "perf_event_open", "keyctl", "add_key", "request_key", "init_module", "finit_module", "delete_module"),
    *("kexec_load", "kexec_file_load", "reboot", "syslog", "acct", "swapon", "swapoff", "quotactl", "userfaultfd"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "vhangup"),
    *("iopl", "ioperm", "lookup_dcookie", "fanotify_init", "open_by_handle_at", "name_to_handle_at"),
    # other name spaces
    *("mount", "umount2", "pivot_root", "chroot", "unshare", "setns"),
    # what Landlock does not see
    *("chmod", "fchmod", "fchmodat", "chown", "fchown", "fchownat", "lchown", "utime", "utimes", "futimesat"),
    *("utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
)
# Calls newer than some libseccomp; their numbers are the same on every architecture.
_ALWAYS_BY_NUMBER = (
    *(425, 426, 427),  # io_uring_setup, _enter, _register: a way around every other rule
    *(428, 429, 430, 431, 432, 433, 442),  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr
    *(424, 434, 438, 440),  # pidfd_send_signal, pidfd_open, pidfd_getfd, process_madvise
    *(452, 463, 466),  # fchmodat2, setxattrat, removexattrat
)
_CLONE3 = 435
_CLONE_THREAD = 0x00010000
_CLONE_NEW = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_PR_SET_PDEATHSIG = 1
# Stands for the child's own process number, which the launcher writes over it.
OWN_PID = 0x5A17C0DE


@functools.cache
def program(*, network: bool, processes: bool) -> bytes:
    """The filter as raw BPF instructions of this machine's architecture; empty where seccomp cannot be used."""
    if sys.platform != "linux":
        return b""
    try:
        import pyseccomp
    except (ImportError, OSError, RuntimeError):  # no wheel, or no libseccomp beside it
        return b""
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    denied = pyseccomp.ERRNO(errno.EPERM)
    for call in (*_ALWAYS, *_ALWAYS_BY_NUMBER, *(() if network else ("socket",))):
        rules.add_rule(denied, call)
    # glibc falls back to clone, whose flags a filter can read
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), _CLONE3)
    for flag in _CLONE_NEW:
        rules.add_rule(denied, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    rules.add_rule(denied, "prctl", pyseccomp.Arg(0, pyseccomp.EQ, _PR_SET_PDEATHSIG))
    if not processes:
        _deny_other_processes(rules, pyseccomp)
    with tempfile.TemporaryFile() as out:
        rules.export_bpf(out)
        out.seek(0)
        return out.read()


def _deny_other_processes(rules, pyseccomp) -> None:  # type: ignore[no-untyped-def]
    """No fork, and signals to itself only: Landlock scopes signals from its sixth version, seccomp everywhere."""
    denied = pyseccomp.ERRNO(errno.EPERM)
    for call in ("fork", "vfork"):
        rules.add_rule(denied, call)
    rules.add_rule(denied, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, _CLONE_THREAD, 0))
    for call in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        rules.add_rule(denied, call, pyseccomp.Arg(0, pyseccomp.NE, OWN_PID))
    rules.add_rule(denied, "tkill")

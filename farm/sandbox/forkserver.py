"""The fork server's own process: it imports slow modules once, then forks a confined child for each order.

    python -P -m farm.sandbox.forkserver FD SECONDS MODULE[:FUNCTION]…

The server has none of our secrets and reads no model. It ends when the other end of the socket FD is closed, and its
children end with it. After SECONDS without children and orders it ends by itself, because its imports take 60 MB of
memory. Orders are JSON. {orders, function, env, cwd}, with the descriptors of stdin, stdout, stderr and the reply, is
answered by {pid}, and {reap: pid} by {exit_code, cpu_s, peak_bytes}.
"""

import contextlib
import gc
import importlib
import json
import os
import socket
import sys
import tempfile
import traceback
from typing import NoReturn, TypedDict

from farm.sandbox import entry, launcher

MAX_BYTES = 1 << 17
REPLY_FD = 3


class Order(TypedDict):
    """A child to fork: the launcher's orders, `module:function`, its environment and its working folder."""

    orders: str
    function: str
    env: dict[str, str]
    cwd: str


class Reap(TypedDict):
    """A child to wait for, by its process id."""

    reap: int


def main() -> None:
    """Import the modules, then answer orders until the other end is closed, or SECONDS pass without child or order."""
    children = 0
    with socket.socket(fileno=int(sys.argv[1])) as line:
        line.settimeout(float(sys.argv[2]))
        for name in sys.argv[3:]:
            module, _, function = name.partition(":")
            imported = importlib.import_module(module)
            if function:
                getattr(imported, function)()
        # the collector writes into objects that it visits; frozen ones keep sharing their memory with every child
        gc.collect()
        gc.freeze()
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(line, MAX_BYTES, 4)
            except TimeoutError:
                if children:
                    continue
                return
            if not message:
                return
            order = json.loads(message)
            if "reap" in order:
                children -= 1
                answer = _reap(order["reap"])
            else:
                children += 1
                answer = _fork_child(order, descriptors)
            line.send(json.dumps(answer).encode())


def _reap(pid: int) -> dict[str, float]:
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"exit_code": code, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * 1024}


def _fork_child(order: Order, descriptors: list[int]) -> dict[str, float]:
    """Fork a child, and wait until it leads a session of its own, so that its group can be ended by its number."""
    ready, ready_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(order, descriptors, ready_end)
    os.close(ready_end)
    os.read(ready, 1)
    for descriptor in (ready, *descriptors):
        os.close(descriptor)
    return {"pid": pid}


def _become(order: Order, descriptors: list[int], ready_end: int) -> NoReturn:
    """Turn the forked process into the child: session, descriptors, environment, confinement, then the function."""
    code = 1
    try:
        os.setsid()
        os.write(ready_end, b".")
        _install_descriptors(descriptors)
        os.environ.clear()
        os.environ.update({**order["env"], "ONNXFARM_REPLY_FD": str(REPLY_FD)})
        tempfile.tempdir = None
        os.chdir(order["cwd"])
        try:
            launcher.confine(launcher.parse_orders(order["orders"]))
            launcher.drop_capabilities()
        except (OSError, ValueError, KeyError) as error:
            print(f"The sandbox could not be closed: {error}", file=sys.stderr)
            code = launcher.EXIT_NOT_CONFINED
        else:
            sys.argv[1:] = [order["function"]]
            entry.main()
            code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _install_descriptors(descriptors: list[int]) -> None:
    """Give stdin, stdout, stderr and the reply the numbers 0 to 3 and close everything else."""
    # first move them out of the way: one of them may have a number that another needs
    high = [os.dup(descriptor) for descriptor in descriptors]
    while min(high) <= REPLY_FD:
        high = [os.dup(descriptor) for descriptor in high]
    for number, descriptor in enumerate(high):
        os.dup2(descriptor, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > REPLY_FD:
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.close(int(name))


if __name__ == "__main__":
    main()

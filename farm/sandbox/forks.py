"""The client of a fork server, which imports modules once and runs each call in a freshly confined fork.

A fresh interpreter with onnx costs at least half a second of processor time; a fork with its own Landlock rules,
seccomp filter and limits costs milliseconds. The server is a separate process with a minimal environment, because the
caller's memory holds secrets and threads.
"""

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO

from farm.sandbox.child_process import ChildExit
from farm.sandbox.forkserver import MAX_BYTES, Order, Reap
from farm.sandbox.policy import SandboxError

# how long a server may take to end before it is killed
_MAX_END_S = 5.0
# long, because the server imports its modules before the first answer, and other processes may keep the machine busy
_MAX_ANSWER_S = 60.0
# a server ends after this time without an order
_IDLE_S = 30.0


class ServerGoneError(SandboxError):
    """The fork server has ended or cannot take the order; the caller can use a fresh interpreter instead."""


class ForkedChild:
    """A child that the fork server forked."""

    def __init__(self, server: "ForkServer", pid: int, *, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self._server = server
        self.pid, self.parent_pid = pid, server.pid
        self.stdout, self.stderr = stdout, stderr

    def has_exited(self) -> bool:
        """Whether the child has ended; it is not reaped. True also where there is no such process."""
        # a zombie's command line is empty; it stays one until it is reaped
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as stat:
                return stat.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
        except OSError:
            return True

    def reap(self) -> ChildExit:
        answer = self._server.send_order({"reap": self.pid})
        return ChildExit(int(answer["exit_code"]), answer["cpu_s"], int(answer["peak_bytes"]))


class ForkServer:
    """One server process with its socket. Any thread may send orders: they are sent and answered one at a time."""

    def __init__(self, modules: Sequence[str], *, env: Mapping[str, str], idle_s: float = _IDLE_S) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(_MAX_ANSWER_S)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "farm.sandbox.forkserver", str(theirs.fileno()), str(idle_s), *modules],
                # a fork does not keep the threads of a library
                env={**env, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def start(self, order: Order, *, stdin: int, reply: int) -> ForkedChild:
        """Fork a child for the order and return it while it runs; `stdin` and `reply` are its descriptors.

        Raises ServerGoneError where the order is too long or the server does not answer.
        """
        with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as theirs:
            readers = []
            writers = []
            for _ in ("stdout", "stderr"):
                reader, writer = os.pipe()
                readers.append(on_failure.enter_context(os.fdopen(reader, "rb", buffering=0)))
                theirs.callback(os.close, writer)
                writers.append(writer)
            pid = int(self.send_order(order, (stdin, *writers, reply))["pid"])
            on_failure.pop_all()
        return ForkedChild(self, pid, stdout=readers[0], stderr=readers[1])

    def send_order(self, order: Order | Reap, descriptors: Sequence[int] = ()) -> dict[str, float]:
        """Send one order with open descriptors and return the answer: `pid`, or the figures of a reaped child.

        Raises ServerGoneError where the order is too long or the server does not answer, which is then cut off.
        """
        message = json.dumps(order).encode()
        if len(message) > MAX_BYTES:
            raise ServerGoneError(f"The policy names too many paths: {len(message):,} bytes of them.")
        with self._lock:
            try:
                socket.send_fds(self._line, [message], list(descriptors))
                answer = self._line.recv(MAX_BYTES)
            except OSError as error:
                # an answer that comes late must not be taken for the next one's
                self._line.close()
                raise ServerGoneError(f"The fork server is gone: {error}.") from error
        if not answer:
            raise ServerGoneError("The fork server has ended.")
        figures: dict[str, float] = json.loads(answer)
        return figures

    def close(self) -> None:
        """End the server, and with it every child that it still has; kill it where it does not end in time."""
        with self._lock:
            self._line.close()
        try:
            self._process.wait(_MAX_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Servers:
    """The fork servers of this process, by the modules that they have imported."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[tuple[int, tuple[str, ...]], ForkServer] = {}
        atexit.register(self.close)

    def get_or_start(self, modules: Sequence[str], *, env: Mapping[str, str]) -> ForkServer:
        """Return the running server that has imported these modules, whatever its environment; where there is none,
        start one with `env`."""
        with self._lock:
            # by process id: a forked process must not use the sockets of its parent
            key = (os.getpid(), tuple(modules))
            running = self._servers.get(key)
            if running is not None and running.has_ended:
                running.close()
                running = None
            self._servers[key] = running or ForkServer(modules, env=env)
            return self._servers[key]

    def discard(self, server: ForkServer) -> None:
        """Close the server and forget it, so that the next caller gets a new one."""
        with self._lock:
            self._servers = {key: running for key, running in self._servers.items() if running is not server}
        server.close()

    def close(self) -> None:
        """End every server that this process started."""
        with self._lock:
            servers = [server for (pid, _), server in self._servers.items() if pid == os.getpid()]
            self._servers = {}
        for server in servers:
            server.close()


servers = Servers()

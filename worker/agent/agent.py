"""Runs a node: waits for approval, says hello, runs the Celery worker, and shuts down cleanly.

The main thread runs the worker's loop. Further threads measure, poll for messages, say hello and keep the lease of a
block. At the start, two more run the probes and send the reports of an earlier agent.
"""

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from math import inf
from types import FrameType
from typing import Protocol

from celery import signals
from celery.worker import WorkController
from celery.worker import state as worker_state
from celery.worker.consumer import Consumer

from farm.base.private_files import write_private_file
from farm.contract import node as messages
from farm.contract.reports import Facts
from farm.contract.version import name_node_queue
from worker.agent import measure_task
from worker.agent.abilities.probes import Abilities, NotProvenError
from worker.agent.connection import enrolment
from worker.agent.connection import gateway as farm
from worker.agent.connection.celery_app import make_app
from worker.agent.connection.lan import BrokerConnection
from worker.agent.connection.mailbox import Mailbox
from worker.agent.connection.outbox import Outbox
from worker.agent.connection.presence import Presence
from worker.agent.home import NodeHome
from worker.agent.installation.runtimes import Installed
from worker.agent.logs import LogTail
from worker.agent.machine import host_lock

logger = logging.getLogger(__name__)

EXIT_OK, EXIT_REFUSED = 0, 3
GOODBYE_S = 2.0
# a node that is idle for this long probes further providers; 0: never
IDLE_PROBE_S = 30.0
# how often the idle time is checked
IDLE_TURN_S = 1.0
# the pause before the temperature of a machine that is too hot is read again
COOL_S = 15.0
# the farm shows a node as waiting for its machine for this long after the last report of the wait
WAIT_LASTS_S = 45.0


class Equipment(Protocol):
    """The runtimes, files and probes of a node. `worker.agent.equipment.NodeEquipment` implements it."""

    @property
    def measure(self) -> measure_task.Execute: ...

    def read_facts(self) -> Facts: ...

    def list_runtimes(self) -> tuple[Installed, ...]: ...

    def probe(self, *, is_cancelled: Callable[[], bool]) -> Abilities: ...

    def probe_further(self, earlier: Abilities, *, is_cancelled: Callable[[], bool]) -> Abilities: ...

    def try_provider(self, short: str, *, is_cancelled: Callable[[], bool]) -> Abilities: ...

    def apply_limits(self, settings: messages.NodeSettings) -> None: ...

    def read_temperature_c(self) -> float | None: ...


class Agent:
    """The agent of the node in a home folder.

    `broker` is for a node on the farm's own network: messages come from it in place of the gateway's long poll.
    """

    def __init__(
        self,
        home: NodeHome,
        *,
        gateway: farm.Gateway,
        equipment: Equipment,
        tail: LogTail,
        idle_probe_s: float = IDLE_PROBE_S,
        broker: BrokerConnection | None = None,
    ) -> None:
        self._home = home
        self._identity = home.load_identity()
        self._gateway = gateway
        self._broker = broker
        self._equipment = equipment
        self._stop = threading.Event()
        self._refusal = ""
        self._is_ready = False
        # one trial or probe at a time, because both install runtimes
        self._trying = threading.Lock()
        self._tried: set[str] = set()
        self._idle_probe_s = idle_probe_s
        self._outbox = Outbox(home.spool, self._gateway)
        self._measurer = measure_task.Measurer(
            gateway=self._gateway,
            outbox=self._outbox,
            execute=self._equipment.measure,
            stop=self._stop,
            on_refused=self.stop_after_refusal,
            on_wait=partial(self._report_wait, lasts_s=WAIT_LASTS_S),
        )
        self._presence = Presence(
            home,
            self._gateway,
            self._identity,
            facts=self._equipment.read_facts,
            runtimes=self._equipment.list_runtimes,
            block=lambda: self._measurer.block,
            log_tail=tail.text,
        )
        self._worker: WorkController | None = None

    def run(self) -> int:
        """Run until SIGTERM, SIGINT, SIGHUP or a refusal. Return the exit status, EXIT_OK or EXIT_REFUSED.

        The file `ready` is written into the home folder once the farm has approved the node and a probe has proven
        something. At the end it is removed, and the farm is told that the node leaves.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        host_lock.set_process_name(self._identity.name)
        self._start_thread("probe", self._probe)
        self._gateway.set_renewal(lambda: enrolment.renew_secret(self._home, self._gateway, self._identity))
        try:
            enrolment.wait_for_approval(self._home, self._gateway, self._identity, stop=self._stop)
        except enrolment.StoppedError:
            return EXIT_OK
        except farm.GatewayError as problem:
            self.stop_after_refusal(str(problem))
            return EXIT_REFUSED
        logger.info("%s is approved and works for %s.", self._identity.name, self._identity.url)
        self._start_thread("spool", self._flush)
        self._start_thread("presence", self._keep_present)
        self._consume()
        self._stop.set()
        self._presence.request_hello()
        self._say_goodbye_in_time()
        return EXIT_REFUSED if self._refusal else EXIT_OK

    def stop_after_refusal(self, sentence: str) -> None:
        """Stop the agent, because the farm does not know this node any more. `sentence` is the farm's reason.

        This returns at once, and `run` then returns EXIT_REFUSED.
        """
        if not self._refusal:
            logger.error("The farm refused this node: %s The agent stops.", sentence)
        self._refusal = sentence
        self._end()

    def _report_wait(self, sentence: str, *, lasts_s: float = inf) -> None:
        """Tell the farm what this node waits for; an empty sentence ends the wait.

        The sentence counts for `lasts_s` seconds, because another node may get the block meanwhile.
        """
        is_new = sentence != self._presence.doing
        self._presence.waits_for, self._presence.waits_until = sentence, time.monotonic() + lasts_s
        if is_new:
            self._presence.request_hello()

    def _consume(self) -> None:
        """Run the Celery worker until it is told to stop, which it does by SystemExit."""
        mailbox = Mailbox(self._poll, on_refused=self.stop_after_refusal)
        app = make_app(
            gateway_url=self._gateway.url, queues=(name_node_queue(self._identity.node_id),), mailbox=mailbox
        )
        measure_task.register_measure_task(app, self._measurer)
        signals.setup_logging.connect(_leave_logging_alone, weak=False)
        signals.worker_ready.connect(self._on_ready, weak=False)
        signals.worker_shutting_down.connect(self._on_shutting_down, weak=False)
        self._worker = app.Worker(
            hostname=f"onnxfarm@{self._identity.node_id}",
            quiet=True,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        try:
            if not self._stop.is_set():
                self._worker.start()
        finally:
            mailbox.close()

    def _poll(self) -> messages.Offer | None:
        max_c = self._presence.settings.max_temperature_c
        heat_c = None if max_c is None else self._equipment.read_temperature_c()
        if max_c is not None and heat_c is not None and heat_c > max_c:
            logger.warning(
                "The processor is at %.0f °C, above the limit of %.0f °C: no blocks are requested.", heat_c, max_c
            )
            self._stop.wait(COOL_S)
            return None
        wait_s = min(self._presence.settings.wait_s, messages.MAX_WAIT_S)
        return (self._broker or self._gateway).receive_message(wait_s=wait_s)

    def _probe(self) -> None:
        """Run the probes that the node starts with, and further ones once it is idle."""
        abilities = self._presence.abilities = self._equipment.probe(is_cancelled=self._stop.is_set)
        self._presence.request_hello()
        while not self._stop.wait(IDLE_TURN_S) and self._idle_probe_s:
            if self._is_ready and self._measurer.idle_s > self._idle_probe_s:
                with self._trying:
                    is_cancelled = self._stop.is_set
                    self._presence.abilities |= self._equipment.probe_further(abilities, is_cancelled=is_cancelled)
                self._presence.request_hello()
                return

    def _try_provider(self, trial: messages.Trial) -> None:
        """Try a provider that the farm asks for. Claim what that proves, or tell the farm why it proves nothing."""
        with self._trying:
            self._report_wait(f"installing {trial.provider} to try it")
            problem = ""
            try:
                self._presence.abilities |= self._equipment.try_provider(trial.provider, is_cancelled=self._stop.is_set)
            except NotProvenError as reason:
                problem = str(reason)
            except Exception as reason:  # any error ends the trial, and is reported
                logger.exception("%s could not be tried", trial.provider)
                problem = f"It could not be tried: {reason!r}"
            logger.info("%s was tried: %s", trial.provider, problem or "it executes")
            self._presence.tried = messages.Tried(id=trial.id, problem=problem[:1000])
            self._report_wait("")
            self._presence.request_hello()

    def _flush(self) -> None:
        with contextlib.suppress(farm.NodeUnknownError):  # the poll gets the same answer and ends the agent
            answered = self._outbox.flush(is_cancelled=self._stop.is_set)
            if answered:
                logger.info("%d reports of an earlier start were answered.", answered)

    def _keep_present(self) -> None:
        self._presence.request_hello()
        self._presence.run(stop=self._stop, on_welcome=self._on_welcome, on_refused=self.stop_after_refusal)

    def _on_welcome(self, welcome: messages.Welcome) -> None:
        """Apply the farm's answer to a hello: the limits, a trial, and the queues to consume."""
        if welcome.health == "retired":
            self.stop_after_refusal(welcome.sentence or "This node was removed from the farm.")
            return
        self._equipment.apply_limits(welcome.settings)
        if welcome.trial is not None and welcome.trial.id not in self._tried and self._presence.abilities.tags:
            self._tried.add(welcome.trial.id)
            self._start_thread("trial", partial(self._try_provider, welcome.trial))
        consumer = getattr(self._worker, "consumer", None)
        node_queue = name_node_queue(self._identity.node_id)
        if consumer is not None:
            consumer.call_soon(_subscribe, consumer, {node_queue, *welcome.queues})
        if self._broker is not None:
            self._broker.set_queues(welcome.queues)
        if welcome.health != "pending" and self._presence.abilities.tags:
            # the ready file is written also for a paused or drained node, because a launcher waits for the file
            if welcome.queues and not self._is_ready:
                self._is_ready = True
                self._measurer.restart_idle_time()
            write_private_file(self._home.folder / "ready", str(os.getpid()))

    def _on_ready(self, **_: object) -> None:
        # Celery's own handler of SIGHUP would restart it with another command line
        signal.signal(signal.SIGHUP, self._on_signal)
        self._presence.request_hello()

    def _on_shutting_down(self, **_: object) -> None:
        self._stop.set()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._end()

    def _end(self) -> None:
        self._stop.set()
        self._presence.request_hello()
        worker_state.should_stop = EXIT_OK

    def _say_goodbye_in_time(self) -> None:
        """Tell the farm that this node leaves, so that it need not wait for a timeout; give up after GOODBYE_S."""
        (self._home.folder / "ready").unlink(missing_ok=True)
        goodbye = threading.Thread(target=self._say_goodbye, daemon=True)
        goodbye.start()
        goodbye.join(GOODBYE_S)

    def _say_goodbye(self) -> None:
        with contextlib.suppress(farm.GatewayError):
            self._presence.say_hello(is_leaving=True)

    def _start_thread(self, name: str, body: Callable[[], None]) -> None:
        threading.Thread(target=body, name=name, daemon=True).start()


def _leave_logging_alone(**_: object) -> None:
    """Do nothing. Because this signal has a receiver, Celery sets no levels and handlers."""


def _subscribe(consumer: Consumer, queues: set[str]) -> None:
    consumed = {queue.name for queue in consumer.task_consumer.queues}
    for name in queues - consumed:
        consumer.add_task_queue(name)
    for name in consumed - queues:
        consumer.cancel_task_queue(name)

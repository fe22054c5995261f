"""What a node measures with: its runtimes, its artifact cache, the staged runner, and the farm's files."""

import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from farm.contract import node as messages
from farm.contract.blocks import Lease
from farm.contract.node import SelfTest
from farm.contract.reports import Facts, Reply, Report
from farm.rules.quality.looks import Search
from farm.rules.runtimes import providers
from worker.agent import execution
from worker.agent.abilities import probes, selftest
from worker.agent.connection import gateway as farm
from worker.agent.connection.mailbox import compute_backoff_s
from worker.agent.home import NodeHome
from worker.agent.installation import stages
from worker.agent.installation.cache import ArtifactCache, FetchError
from worker.agent.installation.environment import NodeEnvironment
from worker.agent.installation.runtimes import Installed, RuntimeStore, RuntimeUnavailableError
from worker.agent.machine import facts, host_lock
from worker.agent.measurement.raw_traces import compress_trace

logger = logging.getLogger(__name__)

# with the pauses between them, five tries take four to eight seconds
FETCH_TRIES = 5
# how long a probe waits for the machine before it runs without the lock; the first one waits only briefly, because it
# takes a second and times nothing, and the node has to become ready
FIRST_PATIENCE_S = 5.0
LATER_PATIENCE_S = 3600.0
TRIAL_PATIENCE_S = 600.0


class NodeEquipment:
    """The equipment of one node home, which measures one block at a time.

    `search` finds the first operator whose outputs differ. `probe_first`: short names of providers to probe before the
    first block. `allowed` and `indexes`: the packages and indexes that its owner allows in addition to the known ones.
    The folder of an earlier agent's unfinished work is deleted. What the probe of an installed build proves is stored
    in the home folder, for later agents. `read_facts` does not measure the load by other programs, and `list_runtimes`
    is in the order of the folders' names.
    """

    def __init__(
        self,
        home: NodeHome,
        gateway: farm.Gateway,
        *,
        search: Search,
        probe_first: tuple[str, ...] = (),
        allowed: Collection[str] = (),
        indexes: Collection[str] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._home = home
        self._sleep = sleep
        self._gateway = gateway
        self._search = search
        self._probe_first = probe_first
        self._lease: Lease | None = None
        self._work = home.folder / "work"
        shutil.rmtree(self._work, ignore_errors=True)  # of an agent that was killed
        self._work.mkdir(parents=True)
        self._stage = stages.stage_runner(home.folder / "stage")
        self._lease_say: Callable[[str], None] = lambda text: None
        self._runtimes = RuntimeStore(home.folder / "runtimes", say=self._say, allowed=allowed, indexes=indexes)
        self._cache = ArtifactCache(home.folder / "artifacts", fetch=self._fetch)

    def measure(
        self,
        lease: Lease,
        *,
        report: Callable[[Report], Reply],
        is_cancelled: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        """Measure the block of a lease, and call `report` with each report and `say` with each activity, in words.

        An exception of `report` (a lost lease) and an OSError (a full disk) end the block, and are raised.
        """
        self._lease, self._lease_say = lease, say
        environment = NodeEnvironment(
            runtimes=self._runtimes,
            cache=self._cache,
            stage=self._stage,
            work_dir=self._work,
            store_trace=self._store_trace,
            store_part=partial(self._store_file, "parts", "application/zip", messages.MAX_PART_BYTES),
            store_compiled=partial(
                self._store_file, "compiled", "application/octet-stream", messages.MAX_COMPILED_BYTES
            ),
            say=self._say,
            search=self._search,
        )
        try:
            execution.execute_block(lease.order, report=report, environment=environment, is_cancelled=is_cancelled)
        finally:
            self._lease, self._lease_say = None, lambda text: None

    def read_facts(self) -> Facts:
        return facts.read_facts(busy_window_s=0)

    def read_temperature_c(self) -> float | None:
        return facts.read_temperature_c()

    def list_runtimes(self) -> tuple[Installed, ...]:
        return self._runtimes.list_installed()

    def apply_limits(self, settings: messages.NodeSettings) -> None:
        """Set the size limits of the artifact cache and of the runtimes, which the next fetch and install apply."""
        self._cache.limit_bytes = settings.cache_bytes
        self._runtimes.limit_bytes = settings.runtimes_bytes

    def probe(self, *, is_cancelled: Callable[[], bool]) -> probes.Abilities:
        """Run the self-test, then probe the CPU and the providers of `probe_first`.

        Return the self-test, the processor's tags, and what these probes and stored ones have proven. A provider that
        is not proven is logged and left out. A machine that fails the self-test has no tags and no providers. Missing
        runtimes are installed. Each probe waits up to FIRST_PATIENCE_S for the machine, and then runs without its lock.
        """
        self_test = self.run_self_test(is_cancelled=is_cancelled)
        if not self_test.passed:
            logger.error("The self-test failed, so this node accepts no blocks: %s", self_test.sentence)
            return probes.Abilities(self_test=self_test)
        abilities = probes.Abilities(tags=probes.list_machine_tags(self.read_facts())) | probes.load_proven(
            self._home.folder
        )
        for short in ("cpu", *self._probe_first):
            with host_lock.try_to_hold_machine(patience_s=FIRST_PATIENCE_S, is_cancelled=is_cancelled):
                abilities |= self._probe_or_log(short, is_cancelled=is_cancelled)
        return abilities | probes.Abilities(self_test=self_test)

    def run_self_test(self, *, is_cancelled: Callable[[], bool] = lambda: False) -> SelfTest:
        """Run the golden model on the agent's own ONNX Runtime. Where it has none, install the runtime PLAIN first.

        If that cannot be installed, the returned test has not passed; nothing is raised.
        """
        folder = Path(tempfile.mkdtemp(prefix="self-test-", dir=self._work))
        try:
            installed = probes.find_agent_runtime() or self._runtimes.provide(probes.PLAIN)
            with host_lock.try_to_hold_machine(
                patience_s=FIRST_PATIENCE_S, is_cancelled=is_cancelled, doing="testing itself"
            ):
                return selftest.run(
                    installed, stage=self._stage, folder=folder, timeout_s=probes.TIMEOUT_S, is_cancelled=is_cancelled
                )
        except RuntimeUnavailableError as problem:
            return SelfTest(passed=False, sentence=f"The golden model has no runtime to run on: {problem}"[:1000])
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def probe_further(self, earlier: probes.Abilities, *, is_cancelled: Callable[[], bool]) -> probes.Abilities:
        """Probe the providers that `earlier` lacks and whose hardware this machine seems to have.

        Return `earlier` and what these probes prove; a provider that is not proven is logged and left out. Missing
        runtimes are installed. Each probe waits up to LATER_PATIENCE_S for the machine, and then runs without its lock.
        """
        abilities = earlier
        for short in probes.list_probable_providers(self.read_facts()):
            if short not in abilities.tags and not is_cancelled():
                with host_lock.try_to_hold_machine(patience_s=LATER_PATIENCE_S, is_cancelled=is_cancelled):
                    abilities |= self._probe_or_log(short, is_cancelled=is_cancelled)
        return abilities

    def try_provider(self, short: str, *, is_cancelled: Callable[[], bool]) -> probes.Abilities:
        """Probe the provider with this short name, and return what that alone proves.

        A provider that plain ONNX Runtime lacks gets a runtime of its own, which is installed if it is missing; another
        runs on the agent's own ONNX Runtime, if there is one. The probe waits up to TRIAL_PATIENCE_S for the machine,
        and then runs without its lock. Raises NotProvenError where the provider is unknown, this machine shows no signs
        of it, its runtime cannot be installed, or it does not execute.
        """
        entry = providers.find(short)
        if entry is None or not providers.can_be_probed(entry):
            raise probes.NotProvenError(f"This agent knows no build of {short} to try: upgrade it.")
        if entry.signs is not None and not probes.shows_signs(entry.signs, self.read_facts()):
            raise probes.NotProvenError(
                f"Nothing was installed, as nothing here looks like it: it takes {entry.needs}."
            )
        with host_lock.try_to_hold_machine(patience_s=TRIAL_PATIENCE_S, is_cancelled=is_cancelled):
            return self._probe_provider(short, is_cancelled=is_cancelled)

    def _probe_or_log(self, short: str, *, is_cancelled: Callable[[], bool]) -> probes.Abilities:
        """Probe a provider. Where it is not proven, log why and return nothing proven."""
        try:
            return self._probe_provider(short, is_cancelled=is_cancelled)
        except probes.NotProvenError as problem:
            logger.warning("%s could not be probed: %s", short, problem)
            return probes.Abilities()

    def _probe_provider(self, short: str, *, is_cancelled: Callable[[], bool]) -> probes.Abilities:
        folder = Path(tempfile.mkdtemp(prefix=f"probe-{short}-", dir=self._work))
        try:
            agent_runtime = None if short in probes.BUILDS else probes.find_agent_runtime()
            installed = agent_runtime or self._runtimes.provide(probes.BUILDS.get(short, probes.PLAIN))
            abilities = probes.probe(
                short, installed=installed, stage=self._stage, folder=folder, is_cancelled=is_cancelled
            )
        except RuntimeUnavailableError as problem:
            raise probes.NotProvenError(str(problem)) from problem
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if short in probes.BUILDS and abilities.tags:
            probes.store_proven(self._home.folder, probes.load_proven(self._home.folder) | abilities)
        return abilities

    def _say(self, text: str) -> None:
        logger.info(text)
        self._lease_say(text)

    def _fetch(self, sha256: str, target: Path) -> None:
        """Download a file of the current block to `target`, with retries while the farm is away. Raises FetchError."""
        lease = self._lease
        if lease is None:
            raise FetchError("no block is leased to this node now")
        for tries in range(1, FETCH_TRIES + 1):
            try:
                with target.open("wb") as file:
                    for piece in self._gateway.stream_file(sha256, token=lease.token):
                        file.write(piece)
                return
            except farm.UnavailableError as problem:
                if tries == FETCH_TRIES:
                    raise FetchError(str(problem)) from problem
                # the gateway may be restarting, and a lost block would count against this node
                self._sleep(compute_backoff_s(tries))
            except farm.GatewayError as problem:
                raise FetchError(str(problem)) from problem

    def _store_trace(self, arm: int, trace_round: int, raw: Path) -> str | None:
        return self._store(f"traces/{arm}/{trace_round}", "application/gzip", compress_trace(raw))

    def _store_file(self, kind: str, media_type: str, limit_bytes: int, arm: int, path: Path) -> str | None:
        content = path.read_bytes() if path.stat().st_size <= limit_bytes else None
        return self._store(f"{kind}/{arm}", media_type, content)

    def _store(self, place: str, media_type: str, content: bytes | None) -> str | None:
        """Send a file of the current block, and return its digest. Where that fails, log why and return None."""
        if self._lease is None:
            return None
        if content is None:
            logger.warning("The file %s is longer than the farm takes and is not sent.", place)
            return None
        order, token = self._lease.order, self._lease.token
        try:
            return self._gateway.store_file(
                f"{order.block}/{place}", content, attempt=order.attempt, token=token, media_type=media_type
            )
        except farm.GatewayError as problem:
            logger.warning("The file %s was not stored: %s", place, problem)
            return None

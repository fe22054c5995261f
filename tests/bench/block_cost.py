"""What one block costs the farm: queries and processor time of each message of its node, as a gateway answers it.

`python -m tests.bench.block_cost [--postgres] [--blocks 40] [--seed 1] [--profile FILE]`. Runs of two cells and an A/A
twin, as tests.bench.fleet has them: claim, facts, three checks, four heartbeats, eight rounds or more, end. Messages go
through all of Django in this process, a socket and the event loop not. `database_ms` is the processor time of
PostgreSQL's own processes; `settle` and `tick` what workers do for a block and a run that have ended. Latencies are
made up.
"""

import argparse
import contextlib
import cProfile
import io
import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.bench.figure import publish
from tests.bench.seeded import farm
from tests.postgres import SKIPPED, Cluster, NoPostgresError

MATRIX = {"budget": "quick", "matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1], "threads": [1]}}
CPU = "CPUExecutionProvider"
BEATS = 4
WARM = 3


class Costs:
    """Seconds of this thread, queries, and seconds of the database, by kind of message."""

    def __init__(self, database: psutil.Process | None) -> None:
        self._database = database
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.queries: dict[str, list[int]] = defaultdict(list)
        self.is_loud = False

    def of(self, kind: str, call: Callable[[], Any]) -> Any:
        """Calls and counts."""
        from django.db import connection

        count = 0

        def counting(execute: Any, sql: str, *rest: Any) -> Any:
            nonlocal count
            count += 1
            if self.is_loud:
                sys.stderr.write(f"{kind} {count}: {sql}\n")
            return execute(sql, *rest)

        with connection.execute_wrapper(counting):
            began = time.thread_time()
            answer = call()
            self.seconds[kind].append(time.thread_time() - began)
        self.queries[kind].append(count)
        return answer

    def used_by_database(self) -> float:
        """Seconds of its processes so far."""
        if self._database is None:
            return 0.0
        family = [self._database, *self._database.children(recursive=True)]
        return sum(sum(one.cpu_times()[:2]) for one in family)

    def told(self, blocks: int) -> dict[str, Any]:
        return {
            kind: {
                "a_block": round(len(times) / blocks, 2),
                "queries": statistics.mode(self.queries[kind]),
                "most_queries": max(self.queries[kind]),
                "ms": round(1000 * statistics.mean(times), 2),
                "ms_a_block": round(1000 * sum(times) / blocks, 1),
            }
            for kind, times in self.seconds.items()
        }


class Machine:
    """One node's requests, answered as a gateway process answers them."""

    def __init__(self, secret: str, costs: Costs, dice: random.Random) -> None:
        from farm.gateway.calls import ThreadHandler, keep_database_connection

        keep_database_connection()
        self._handler, self._secret, self._costs, self._dice = ThreadHandler(), secret, costs, dice

    def measure(self, block: int, attempt: int) -> None:
        """A block from its claim to its end."""
        lease = self._post("claim", f"blocks/{block}/claim", {"attempt": attempt})
        order, token = lease["order"], lease["token"]
        arms = [arm["arm"] for arm in order["arms"]]
        facts = {"hostname": "made-up", "os": "Linux", "arch": "x86_64", "sandbox": "landlock"}
        self._report(order, token, {"kind": "facts", "facts": facts})
        for arm in arms:
            said = {"kind": "check", "arm": arm, "requested_providers": [CPU], "active_providers": [CPU]}
            self._report(order, token, said)
        number, goes_on = order["first_round"], True
        while goes_on:
            if number < BEATS:
                beat = {"attempt": order["attempt"], "doing": f"round {number}"}
                self._post("heartbeat", f"blocks/{block}/heartbeat", beat, token=token)
            self._dice.shuffle(arms)
            places = [{"arm": arm, "position": place, "sample": self._sample()} for place, arm in enumerate(arms)]
            goes_on = self._report(order, token, {"kind": "round", "round": number, "samples": places})["go_on"]
            number += 1
        self._report(order, token, {"kind": "end", "wall_s": 30.0})

    def _sample(self) -> dict[str, Any]:
        from farm.rules.judging.summaries import pack_timings

        nanoseconds = round(5_000 * self._dice.uniform(0.995, 1.005))
        known = dict.fromkeys(("p50_ms", "mean_ms", "min_ms", "max_ms"), nanoseconds / 1e6)
        return {**known, "std_ms": 0.0, "n": 4, "timings": pack_timings(np.full(4, nanoseconds).tolist())}

    def _report(self, order: dict[str, Any], token: str, report: dict[str, Any]) -> dict[str, Any]:
        body = {"attempt": order["attempt"], "report": report}
        said: dict[str, Any] = self._post(report["kind"], f"blocks/{order['block']}/reports", body, token=token)
        return said

    def _post(self, kind: str, address: str, body: Any, *, token: str = "") -> Any:
        sent = json.dumps(body).encode()
        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        headers += [(b"content-length", str(len(sent)).encode()), (b"authorization", f"Bearer {self._secret}".encode())]
        headers += [(b"x-attempt-token", token.encode())] if token else []
        scope: Any = {
            "type": "http", "method": "POST", "path": f"/api/node/v1/{address}", "query_string": b"",
            "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http",
        }  # fmt: skip
        status, _, content = self._costs.of(kind, lambda: self._handler.answer(scope, io.BytesIO(sent)))
        if status != 200:
            raise SystemExit(f"{address} answered {status}: {content[:500]!r}")
        return json.loads(content)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sql", action="store_true", help="say the last block's queries on stderr")
    parser.add_argument("--profile", metavar="FILE", help="where cProfile's statistics of the blocks go")
    words = parser.parse_args()
    try:
        with database(words) as (home, cluster):
            figures = _measured(home, cluster, words)
    except NoPostgresError as problem:
        sys.stderr.write(f"skipped: {problem}\n")
        return SKIPPED
    name = "PostgreSQL" if words.postgres else "SQLite"
    publish(claim=f"a block of two cells and a twin on {name}", seed=words.seed, figures=figures)
    return 0


@contextlib.contextmanager
def database(words: argparse.Namespace) -> Iterator[tuple[Path, Cluster | None]]:
    """The farm's folder, and its PostgreSQL where it has one."""
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="block-cost-")))
        yield home, stack.enter_context(Cluster(durable=True)) if words.postgres else None


def _measured(home: Path, cluster: Cluster | None, words: argparse.Namespace) -> dict[str, Any]:
    farm.use(home, database_url=cluster.url if cluster else "")
    from django.core.management import call_command
    from django.db import connections
    from django.test.utils import override_settings

    call_command("migrate", verbosity=0)
    with override_settings(ALLOWED_HOSTS=["*"]):
        figures = _filled(cluster, words)
    connections.close_all()
    return figures


def _filled(cluster: Cluster | None, words: argparse.Namespace) -> dict[str, Any]:
    from unittest import mock

    from farm.runs.services import conclude_runs, hints, settle, start_run
    from tests.integration.runs.making import prepare_all

    owner, version, secret = _farm()
    costs = Costs(psutil.Process(cluster.pid) if cluster else None)
    machine = Machine(secret, costs, random.Random(words.seed))
    profile = cProfile.Profile(time.thread_time)
    with mock.patch.object(hints, "send_hint", return_value=True):
        for number in range(WARM + words.blocks):
            if number == WARM:
                costs.seconds.clear()
                costs.queries.clear()
                before = costs.used_by_database()
                if words.profile:
                    profile.enable()
            costs.is_loud = words.sql and number == WARM + words.blocks - 1
            run = costs.of("start", lambda: start_run(version=version, matrix=MATRIX, requested_by=owner))
            if not number:
                prepare_all(version.model.team)
            block = run.blocks.get()
            costs.of("release", _release)
            block.refresh_from_db()
            machine.measure(block.pk, block.attempt)
            costs.of("settle", partial(settle, block_id=block.pk, attempt=block.attempt))
            costs.of("tick", conclude_runs)
    profile.disable()
    if words.profile:
        profile.dump_stats(words.profile)
    told = costs.told(words.blocks)
    ours = [kind for kind in told if kind not in ("start", "release", "settle", "tick")]
    return {
        "messages": told,
        "gateway_ms_a_block": round(sum(told[kind]["ms_a_block"] for kind in ours), 1),
        "queries_a_block": round(sum(sum(costs.queries[kind]) for kind in ours) / words.blocks),
        "database_ms_a_block": round(1000 * (costs.used_by_database() - before) / words.blocks, 1),
    }


def _release() -> None:
    from farm.runs.services import release_ready_blocks

    release_ready_blocks()


def _farm() -> tuple[Any, Any, str]:
    """An owner, a version that was inspected, and the secret of a node."""
    from farm.accounts.models import Membership, Team, User
    from farm.accounts.states import Role
    from tests.integration.dashboard import rows

    team, owner = Team.objects.create(name="vision"), User.objects.create(username="ada", is_superuser=True)
    Membership.objects.create(team=team, user=owner, role=Role.ADMIN)
    secret = secret_of_node(rows.make_node(team, owner, name="bench-1"))
    return owner, rows.make_version(team, owner), secret


def secret_of_node(node: Any) -> str:
    """A secret that opens the gateway for this node."""
    from datetime import timedelta

    from django.utils import timezone

    from farm.base.secrecy import hash_secret
    from farm.fleet.models import NodeSecret

    secret = f"ofn_made-up-{node.pk}"
    until = timezone.now() + timedelta(days=1)
    NodeSecret.objects.create(node=node, digest=hash_secret(secret), expires_at=until)
    return secret


if __name__ == "__main__":
    sys.exit(main())

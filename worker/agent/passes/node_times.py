"""Times of a model's own nodes from the launches of rounds: which executed node counts for which, from first traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from farm.contract.reports import MOST_NODES, NodeTimes
from farm.rules.cells import scenarios
from farm.rules.tracing.alignment import Origin
from worker.agent.passes import orders
from worker.agent.passes.arms import PreparedArm
from worker.agent.passes.checks import CPU
from worker.agent.passes.orders import RunnerOrder
from worker.agent.passes.traces import Profiled, Row

# what tells an executed node from others of its arm, in every launch alike
Key = tuple[tuple[str, ...], str, str, str, int]

_ROWS = TypeAdapter(tuple[Row, ...])
_TIMES = TypeAdapter(NodeTimes)


@dataclass
class RoundTraces:
    """What the launches of a block's rounds are asked to trace, and what their answers mean."""

    _nodes: dict[int, dict[Key, str]] = field(default_factory=dict)

    def learn(self, profiled: Profiled, origins: Sequence[Origin]) -> None:
        """Keeps which own node each executed one counts for, from an arm's first trace. `origins`: of its nodes.

        Other providers than the CPU have none: what a device executes lies in no session that could be closed safely.
        Nor have models with more nodes than a report names one by one.
        """
        reply, arm = profiled.reply, profiled.arm
        cell = arm.order.cell
        is_plain = cell.provider == CPU and scenarios.is_plain(cell)
        if reply is None or profiled.trace_round or not is_plain or not 0 < len(reply.executed) <= MOST_NODES:
            return
        self._nodes[arm.arm] = {
            _key(row): row.own_node(origin) for row, origin in zip(reply.executed, origins, strict=True)
        }

    def order(self, arm: PreparedArm) -> RunnerOrder:
        """What a launch of this arm is told besides; nothing where its first trace did not work."""
        nodes = self._nodes.get(arm.arm)
        if not nodes:
            return {}
        runs = min(orders.ROUND_TRACE_RUNS, orders.ROUND_TRACE_EVENTS // len(nodes))
        return {"is_traced": True, "trace_runs": runs, "trace_s": orders.ROUND_TRACE_S}

    def times(self, arm: int, reply: Mapping[str, object]) -> tuple[float, ...]:
        """µs of each own node of the arm, in the order of their names; none where the answer is about other nodes."""
        nodes = self._nodes.get(arm, {})
        try:
            rows = _ROWS.validate_python(reply.get("traced", ()))
        except ValidationError:
            return ()
        if not rows or any(_key(row) not in nodes for row in rows):
            return ()
        spent = dict.fromkeys(sorted(nodes.values()), 0.0)
        for row in rows:
            spent[nodes[_key(row)]] += row.time_us
        try:
            return _TIMES.validate_python(tuple(round(time_us, 3) for time_us in spent.values()))
        except ValidationError:
            return ()


def _key(row: Row) -> Key:
    return row.path, row.name, row.op_type, row.provider, row.index

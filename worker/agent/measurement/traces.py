"""Profiles an arm, maps the executed nodes to the model's own nodes, and reads their times in rounds."""

import contextlib
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from farm.contract.reasons import Reason
from farm.contract.reports import (
    MAX_BYTES,
    MAX_CACHE_COPIES,
    MAX_NODES,
    NodeTimes,
    Operator,
    PromptTrace,
    ProviderShare,
    TraceReport,
)
from farm.rules.cells import scenarios
from farm.rules.tracing import node_origins
from farm.rules.tracing.alignment import Origin
from farm.rules.tracing.executions import COPY_TO_DEVICE, COPY_TO_HOST
from farm.rules.tracing.graphs import Graph
from farm.sandbox import plain_files
from worker.agent.installation.environment import StoreTrace
from worker.agent.measurement import graphs, orders
from worker.agent.measurement.checks import CPU, describe_first_problem, make_runner_order
from worker.agent.measurement.orders import RunnerOrder
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Launcher, make_garbled_reason

# the slowest operators are reported one by one, and the others as a sum for each provider: a report stays under 1 MB
MAX_OPERATORS = MAX_NODES
# the maximum of operators of a prompt that are reported one by one
MAX_PROMPT_OPERATORS = 512
# the maximum of nodes that are reported as inputs of an operator
MAX_EDGES = 64


class Row(BaseModel):
    """An executed node in the runner's answer. `time_us` is that of one run, and `calls` is the sum of all runs.

    `memory_bytes`: what it allocated and kept; None: not known.
    """

    model_config = ConfigDict(extra="forbid")
    path: tuple[str, ...]
    name: str
    op_type: str
    provider: str
    index: int
    time_us: float = Field(ge=0, allow_inf_nan=False)
    calls: int = Field(ge=1)
    memory_bytes: int | None = Field(default=None, ge=0, le=MAX_BYTES)

    def as_executed(self) -> node_origins.Executed:
        return node_origins.Executed(
            name=self.name, op_type=self.op_type, provider=self.provider, index=self.index, path=self.path
        )

    def choose_label(self, origin: Origin) -> str:
        """Return the label of the model's own node, else the executed node's path and name, else its operator type."""
        return origin.node or "/".join((*self.path, self.name)) or self.op_type


class _Group(BaseModel):
    """The nodes that a provider took, each as its name and operator type."""

    provider: str
    nodes: tuple[tuple[str, str], ...]


class _Prompt(BaseModel):
    """The trace of a prompt in the answer about a cell that generates."""

    tokens: int = Field(ge=1)
    runs: int = Field(ge=0)
    run_us: float = Field(ge=0, allow_inf_nan=False)
    executed: tuple[Row, ...]


class _Reply(BaseModel):
    """The answer of a trace pass. `raw` and `optimized` are names of files in the pass's folder."""

    runs: int = Field(ge=0)
    run_us: float = Field(ge=0, allow_inf_nan=False)
    executed: tuple[Row, ...]
    assigned: tuple[_Group, ...] = ()
    raw: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    optimized: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]+$")
    prompt: _Prompt | None = None


@dataclass(frozen=True)
class Profiled:
    """The result of a profiled process, whose nodes are not mapped to the model's own yet.

    `raw` and `optimized` are the files that it left, the profile and the optimised model; None where one is missing.
    """

    arm: PreparedArm
    trace_round: int
    reason: Reason | None = None
    reply: _Reply | None = None
    folder: Path | None = None

    @property
    def optimized(self) -> Path | None:
        return self._find_left_file(self.reply.optimized) if self.reply is not None else None

    @property
    def raw(self) -> Path | None:
        return self._find_left_file(self.reply.raw) if self.reply is not None else None

    def _find_left_file(self, name: str | None) -> Path | None:
        """Find the plain file of this name in the folder. It may be missing, because a reply may say anything."""
        if self.folder is None or name is None:
            return None
        names = plain_files.list_plain_files(self.folder, re.escape(name))
        return self.folder / names[0] if names else None


def profile_arm(launcher: Launcher, arm: PreparedArm, *, trace_round: int) -> Profiled:
    """Run the trace pass of an arm. Its files stay in a separate folder until `delete_files`.

    Where the process fails, or its answer cannot be read, the result has a `reason` and no reply. A further trace
    (`trace_round` above 0) may have a shorter time limit than the first.
    """
    folder = Path(tempfile.mkdtemp(prefix="trace-", dir=arm.scratch))
    trace_s = min(orders.TRACE_S, orders.FURTHER_TRACE_S) if trace_round else orders.TRACE_S
    order: RunnerOrder = {**make_runner_order(arm, "trace"), "trace_runs": orders.TRACE_RUNS, "trace_s": trace_s}
    if scenarios.of_cell(arm.order.cell).takes_prompts:
        order["scenario"] = scenarios.runner_settings(arm.order.cell)
    answer = launcher.launch(arm, order, work_dir=folder)
    if answer.reason is not None:
        return Profiled(arm=arm, trace_round=trace_round, reason=answer.reason, folder=folder)
    try:
        reply = _Reply.model_validate(answer.reply)
    except ValidationError as error:
        reason = make_garbled_reason(describe_first_problem(error))
        return Profiled(arm=arm, trace_round=trace_round, reason=reason, folder=folder)
    return Profiled(arm=arm, trace_round=trace_round, reply=reply, folder=folder)


@dataclass
class Mapper:
    """Maps the executed nodes of a block to the own nodes of its models. Each graph is parsed once, in a child process.

    `map_origins` and `map_prompt_origins` return the origins in the order of the executed nodes, those of a run and
    those of the prompt. All are UNMAPPED where a graph is unknown. The list is empty for a trace that failed or has no
    prompt.
    """

    work_dir: Path
    memory_bytes: int | None = None
    _models: dict[Path, Graph | None] = field(default_factory=dict)
    _optimized: dict[int, Graph | None] = field(default_factory=dict)

    def read_graphs(self, profiled: Sequence[Profiled]) -> None:
        """Read the graphs of these traces that were not read before. An arm's optimised graph does not change."""
        models = {path for trace in profiled for path in (trace.arm.model, trace.arm.source)} - self._models.keys()
        saved = {
            trace.arm.arm: trace.optimized
            for trace in profiled
            if trace.optimized and trace.arm.arm not in self._optimized
        }
        paths = [*sorted(models), *(path for path in saved.values() if path)]
        if not paths:
            return
        read = graphs.read_graphs(paths, work_dir=self.work_dir, memory_bytes=self.memory_bytes)
        self._models |= dict(zip(sorted(models), read, strict=False))
        self._optimized |= dict(zip(saved, read[len(models) :], strict=True))

    def get_source_graph(self, profiled: Profiled) -> Graph | None:
        """Return the graph of the trace's model as it was uploaded; None where `read_graphs` could not read it."""
        return self._models.get(profiled.arm.source)

    def map_origins(self, profiled: Profiled) -> list[Origin]:
        return self._map_rows(profiled, profiled.reply.executed) if profiled.reply is not None else []

    def map_prompt_origins(self, profiled: Profiled) -> list[Origin]:
        prompt = profiled.reply.prompt if profiled.reply is not None else None
        return self._map_rows(profiled, prompt.executed) if prompt is not None else []

    def _map_rows(self, profiled: Profiled, rows: Sequence[Row]) -> list[Origin]:
        assert profiled.reply is not None
        executed = [row.as_executed() for row in rows]
        model, source = self._models.get(profiled.arm.model), self._models.get(profiled.arm.source)
        if model is None or source is None:
            return [node_origins.UNMAPPED] * len(executed)
        return node_origins.map_executed(
            executed,
            source=source,
            model=model if profiled.arm.is_variant else source,
            optimized=self._optimized.get(profiled.arm.arm),
            assigned=[
                node_origins.Assigned(provider=group.provider, labels=tuple(name for name, _ in group.nodes if name))
                for group in profiled.reply.assigned
            ],
        )


def make_report(profiled: Profiled, mapper: Mapper, *, store: StoreTrace, has_edges: bool = False) -> TraceReport:
    """Make the report of one trace, and call `store` with the raw file of an arm's first trace.

    Operators come slowest first; beyond MAX_OPERATORS they are summed for each provider. Providers come by their share
    of the time, the largest first. `has_edges`: operators also name the model's own nodes that they read from, if its
    graph is known. The report of a trace that failed, or that holds no complete run, has only the reason. `mapper` must
    have read the graphs before.
    """
    origins, source = mapper.map_origins(profiled), mapper.get_source_graph(profiled)
    arm, trace_round = profiled.arm.arm, profiled.trace_round
    reply = profiled.reply
    if reply is None or profiled.folder is None:
        return TraceReport(arm=arm, trace_round=trace_round, reason=profiled.reason)
    if reply.runs == 0:
        return TraceReport(
            arm=arm, trace_round=trace_round, reason=make_garbled_reason("the profile holds no complete run")
        )

    prompt = None
    if reply.prompt is not None and reply.prompt.runs:
        runs, of_prompt = reply.prompt.runs, mapper.map_prompt_origins(profiled)
        operators = _make_operators(reply.prompt.executed, runs, of_prompt, source=None, limit=MAX_PROMPT_OPERATORS)
        prompt = PromptTrace(tokens=reply.prompt.tokens, runs=runs, run_us=reply.prompt.run_us, operators=operators)

    raw, has_cache = profiled.raw, reply.prompt is not None
    return TraceReport(
        arm=arm,
        trace_round=trace_round,
        runs=reply.runs,
        run_us=reply.run_us,
        providers=_compute_shares(reply.executed),
        operators=_make_operators(reply.executed, reply.runs, origins, source=source if has_edges else None),
        copies_to_device=_count_copies(reply, COPY_TO_DEVICE),
        copies_to_host=_count_copies(reply, COPY_TO_HOST),
        mapped_share=node_origins.compute_mapped_share(origins),
        raw_sha256=store(arm, trace_round, raw) if trace_round == 0 and raw is not None else None,
        prompt=prompt,
        cache_copies=_list_cache_copies(reply, origins, source) if has_cache and source is not None else (),
    )


def delete_files(profiled: Profiled) -> None:
    """Delete the folder of files that the process left behind."""
    if profiled.folder is not None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(profiled.folder)


def _compute_shares(rows: Sequence[Row]) -> tuple[ProviderShare, ...]:
    total = sum(row.time_us for row in rows)
    names = dict.fromkeys(row.provider for row in rows)
    shares = []
    for name in names:
        of_provider = [row for row in rows if row.provider == name]
        # durations are whole µs: if every node takes less than one, the shares are computed from the counts
        share = sum(row.time_us for row in of_provider) / total if total else len(of_provider) / len(rows)
        shares.append(ProviderShare(name=name, nodes=len(of_provider), time_share=share))
    return tuple(sorted(shares, key=lambda row: -row.time_share))


def _list_cache_copies(reply: _Reply, origins: Sequence[Origin], source: Graph) -> tuple[str, ...]:
    """List the own nodes that copy a cache at each token: executed Concat nodes whose output is a present cache."""
    labels = []
    for row, origin in zip(reply.executed, origins, strict=True):
        node = source.by_label.get(origin.node or "") if row.op_type == "Concat" else None
        if node is not None and any(name.startswith("present") for name in node.outputs):
            labels.append(node.label)
    return tuple(labels[:MAX_CACHE_COPIES])


def _make_operators(
    rows: Sequence[Row], runs: int, origins: Sequence[Origin], *, source: Graph | None, limit: int = MAX_OPERATORS
) -> tuple[Operator, ...]:
    operators = [
        Operator(
            node=row.choose_label(origin),
            covers=origin.covers,
            op_type=row.op_type,
            provider=row.provider,
            time_us=row.time_us,
            calls=max(1, round(row.calls / runs)),
            memory_bytes=row.memory_bytes,
            reads=_list_read_nodes(origin, source) if source is not None else (),
        )
        for row, origin in zip(rows, origins, strict=True)
    ]
    operators.sort(key=lambda row: -row.time_us)
    return (*operators[:limit], *_sum_operators(operators[limit:]))


def _list_read_nodes(origin: Origin, source: Graph) -> tuple[str, ...]:
    """List the own nodes whose outputs are read by the own nodes of an executed one."""
    labels = [label for label in (origin.node, *origin.covers) if label is not None]
    read = [name for label in labels if label in source.by_label for name in source.by_label[label].inputs]
    makers = dict.fromkeys(maker.label for name in read if (maker := source.find_maker(name)) is not None)
    return tuple(label for label in makers if label not in labels)[:MAX_EDGES]


def _sum_operators(operators: Sequence[Operator]) -> list[Operator]:
    providers = dict.fromkeys(operator.provider for operator in operators)
    return [
        Operator(
            node=f"{sum(operator.provider == name for operator in operators)} further nodes",
            op_type="",
            provider=name,
            time_us=sum(operator.time_us for operator in operators if operator.provider == name),
        )
        for name in providers
    ]


def _count_copies(reply: _Reply, op_type: str) -> int:
    return round(sum(row.calls for row in reply.executed if row.op_type == op_type) / reply.runs)


_ROWS = TypeAdapter(tuple[Row, ...])
_TIMES = TypeAdapter(NodeTimes)


@dataclass
class RoundTraces:
    """Makes the part of orders that asks the launches of a block's rounds for a trace, and reads their answers."""

    _nodes: dict[int, dict[node_origins.Executed, str]] = field(default_factory=dict)

    def remember_nodes(self, profiled: Profiled, origins: Sequence[Origin]) -> None:
        """Remember the own node of each executed node of an arm's first trace, from `origins`.

        Nothing is remembered for other providers than the CPU, whose sessions cannot always be closed safely, for cells
        with another scenario than the plain one, for later or failed traces, or for more than MAX_NODES nodes.
        """
        reply, arm = profiled.reply, profiled.arm
        cell = arm.order.cell
        is_plain = cell.provider == CPU and scenarios.is_plain(cell)
        if reply is None or profiled.trace_round or not is_plain or not 0 < len(reply.executed) <= MAX_NODES:
            return
        self._nodes[arm.arm] = {
            row.as_executed(): row.choose_label(origin) for row, origin in zip(reply.executed, origins, strict=True)
        }

    def make_order_part(self, arm: PreparedArm) -> RunnerOrder:
        """Make the part of an order that asks a launch for a trace; empty where no nodes of the arm are remembered."""
        nodes = self._nodes.get(arm.arm)
        if not nodes:
            return {}
        runs = min(orders.ROUND_TRACE_RUNS, orders.ROUND_TRACE_EVENTS // len(nodes))
        return {"is_traced": True, "trace_runs": runs, "trace_s": orders.ROUND_TRACE_S}

    def parse_times(self, arm: int, reply: Mapping[str, object]) -> tuple[float, ...]:
        """Read the µs of each own node of an arm, ordered by name; 0 for those that the answer leaves out.

        Return an empty tuple where the answer has no trace, an invalid one, or unknown nodes.
        """
        nodes = self._nodes.get(arm, {})
        try:
            rows = _ROWS.validate_python(reply.get("traced", ()))
        except ValidationError:
            return ()
        if not rows or any(row.as_executed() not in nodes for row in rows):
            return ()
        spent = dict.fromkeys(sorted(nodes.values()), 0.0)
        for row in rows:
            spent[nodes[row.as_executed()]] += row.time_us
        try:
            return _TIMES.validate_python(tuple(round(time_us, 3) for time_us in spent.values()))
        except ValidationError:
            return ()

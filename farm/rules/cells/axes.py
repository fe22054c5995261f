"""The table of axes: in what cells may differ, how a matrix declares each axis, and how its values are written.

There is one entry for each axis, in the order of pages, tables and sentences. All code that reads, writes, shows,
names, sorts or compares cells uses this table.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from packaging.version import Version

from farm.contract.cells import BOUND, NO_POLICY, SINGLE, CellSpec, Runtime
from farm.contract.document_cells import Cell
from farm.rules.cells import readers, recipes, scenarios
from farm.rules.cells.axis import NO_DEFAULT, Axis, MatrixAxis, declare_from_field, declare_from_kind, named_schema
from farm.rules.cells.fields import Schema, whole_number
from farm.rules.cells.session_sets import SESSION_SCHEMA, read_session, session_set_of
from farm.rules.cells.values import PrecisionChoice, ProviderChoice
from farm.rules.runtimes import distributions, providers
from farm.rules.runtimes.order import release_order
from farm.rules.wording import titles
from farm.rules.wording.numbers import counted

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

__all__ = ["AXES", "BY_NAME", "FIELD_AXES", "MATRIX_AXES", "NO_DEFAULT", "Axis", "MatrixAxis"]

MAX_BATCH = 65_536
MAX_MEMORY_LIMIT_MB = readers.MAX_MEMORY_LIMIT_MB

_TEXT: Schema = {"type": "string"}
_OPTIONS: Schema = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_PRECISION_NAME = rf"^({'|'.join(recipes.PRECISIONS)})(:[a-z-]+(=[^:]*)?)*$"


def format_pairs(entries: Mapping[str, object]) -> str:
    """Write names with their values, sorted by name, as the command line takes them: `height=8 width=8`."""
    return " ".join(f"{name}={value}" for name, value in sorted(entries.items()))


def _shapes_of(cell: Cell) -> Mapping[str, int]:
    # the lengths of a cell that generates are in its scenario, and its shapes are only those of the check pass
    return {} if scenarios.parse_recorded(cell.scenario).takes_prompts else cell.shapes


def format_sizes(sizes: Mapping[str, int]) -> str:
    """Write the sizes of dimensions as `height=8 width=8`; those of a decoder's step as `1 token behind 256`."""
    totals = {name: size for name, size in sizes.items() if "+" in name or "total" in name}
    pasts = [size for name, size in sizes.items() if "past" in name and name not in totals]
    others = ("+", "total", "past", "encoder")
    news = [size for name, size in sizes.items() if "seq" in name and not any(word in name for word in others)]
    if len(pasts) == len(news) == 1 and len(sizes) == len(totals) + 2 and {*totals.values()} <= {pasts[0] + news[0]}:
        return f"{counted(news[0], 'token')} behind {pasts[0]}"
    return format_pairs(sizes)


def runtime_sort_key(runtime: Runtime) -> tuple[bool, str, Version, str]:
    distribution, version = runtime.distribution, runtime.version
    return (distribution != distributions.DEFAULT_DISTRIBUTION, distribution, release_order(version), version)


def session_name(cell: Cell) -> str:
    """Return the name of the cell's session set; without a name its options as text, or else `default`."""
    return str(cell.session.get("name") or format_pairs(cell.session) or "default")


def _find_unusual_hardware(spec: CellSpec) -> str | None:
    """Return the hardware tag of a cell; None where it is the tag that its provider needs anyway."""
    provider = providers.find(spec.provider)
    usual = provider.tag_with(spec.provider_options) if provider is not None else None
    return spec.hardware if spec.hardware != usual else None


AXES: tuple[Axis, ...] = (
    Axis(
        "model",
        "Model",
        value_of=lambda c: c.model,
        short_of=lambda c: c.model or c.model_sha256[:12],
        fields=("model_sha256",),
    ),
    Axis(
        "hardware",
        "Hardware",
        is_setting=False,
        declared=MatrixAxis("hardware", read=readers.read_hardware, schema=_TEXT, value_in=_find_unusual_hardware),
    ),
    Axis(
        "node",
        "Node",
        label_of=lambda c: c.node or "no node",
        sort_key_of=lambda c: c.node or "",
        default=None,
        is_setting=False,
    ),
    Axis(
        "provider",
        "Provider",
        short_of=lambda c: providers.title(c.provider),
        declared=MatrixAxis(
            "provider",
            read=readers.read_provider,
            schema=named_schema(
                "name", {"type": "string", "examples": [entry.short for entry in providers.PROVIDERS]}, _OPTIONS
            ),
            value_in=lambda spec: ProviderChoice(spec.provider, spec.provider_options),
        ),
    ),
    Axis(
        "provider_options",
        "Provider options",
        short_of=lambda c: format_pairs(c.provider_options),
        label_of=lambda c: format_pairs(c.provider_options) or "default options",
        sort_key_of=lambda c: sorted(c.provider_options.items()),
        default={},
    ),
    Axis(
        "policy",
        "Policy",
        default=NO_POLICY,
        declared=declare_from_field(
            "policy",
            "session",
            help="By what ONNX Runtime itself chooses the device: max-performance, min-power, prefer-npu.",
        ),
    ),
    Axis(
        "call",
        "Call",
        short_of=lambda c: titles.CALLS[c.call],
        label_of=lambda c: titles.CALLS[c.call],
        default=BOUND,
        declared=declare_from_field(
            "call", "session", help="The call that is timed: bound (io-binding), run (session.run); by comma."
        ),
    ),
    Axis(
        "batch",
        "Batch",
        short_of=lambda c: "–" if c.batch is None else str(c.batch),
        label_of=lambda c: "no batch" if c.batch is None else f"batch {c.batch}",
        sort_key_of=lambda c: c.batch or 0,
        default=None,
        # planning finds it in inputs and models too
        declared=declare_from_kind("batch", whole_number(MAX_BATCH), value_in=lambda spec: spec.workload.batch),
    ),
    Axis(
        "shapes",
        "Shapes",
        value_of=lambda c: cast("SupportsRichComparison", _shapes_of(c)),
        short_of=lambda c: format_sizes(_shapes_of(c)),
        label_of=lambda c: format_sizes(_shapes_of(c)) or "default shapes",
        sort_key_of=lambda c: sorted(_shapes_of(c).items()),
        default={},
        declared=MatrixAxis(
            "shapes",
            read=readers.read_shapes,
            schema={"type": "object", "additionalProperties": dict(readers.DIMENSION.schema)},
            value_in=lambda spec: spec.workload.shapes,
        ),
    ),
    Axis(
        "precision",
        "Precision",
        short_of=lambda c: recipes.describe_precision(c.precision, c.recipe, uploaded=c.uploaded),
        sort_key_of=lambda c: ("fp32" not in c.precision, c.precision, c.recipe),
        fields=("precision", "recipe"),
        declared=MatrixAxis(
            "precision",
            read=readers.read_precision,
            schema=named_schema(
                "precision",
                {"enum": list(recipes.PRECISIONS)},
                {"type": "object", "additionalProperties": False, "properties": recipes.SCHEMA},
                text={"type": "string", "pattern": _PRECISION_NAME},
            ),
            value_in=lambda spec: PrecisionChoice(spec.recipe.precision, recipes.variant_options(spec.recipe)),
        ),
    ),
    Axis(
        "opset",
        "Opset",
        label_of=lambda c: f"opset {c.opset}" if c.opset else "opset unknown",
        sort_key_of=lambda c: c.opset or 0,
        default="as-is",
        declared=MatrixAxis(
            "opset",
            read=readers.read_opset,
            schema={"anyOf": [{"enum": ["as-is", "max-of-runtime"]}, dict(readers.OPSET.schema)]},
            value_in=lambda spec: spec.recipe.opset,
        ),
    ),
    Axis(
        "threads",
        "Threads",
        label_of=lambda c: counted(c.threads, "thread"),
        declared=declare_from_field("threads", "session"),
    ),
    Axis(
        "optimization",
        "Optimization",
        default="all",
        declared=declare_from_field("optimization", "session", help="disable, basic, extended, all."),
    ),
    Axis(
        "session",
        "Session",
        value_of=session_name,
        label_of=lambda c: f"session {session_name(c)}",
        default="default",
        declared=MatrixAxis(
            "session",
            read=read_session,
            schema=SESSION_SCHEMA,
            value_in=lambda spec: session_set_of(spec.session, name=""),
        ),
    ),
    Axis(
        "concurrency",
        "Concurrency",
        label_of=lambda c: counted(c.concurrency, "stream"),
        default=1,
        declared=declare_from_field("concurrency", "workload", help="Sessions at once, e.g. 1,4."),
    ),
    Axis(
        "scenario",
        "Scenario",
        value_of=lambda c: scenarios.parse_recorded(c.scenario).axis_text,
        label_of=lambda c: scenarios.describe(scenarios.parse_recorded(c.scenario).axis_text),
        short_of=lambda c: scenarios.parse_recorded(c.scenario).short,
        default=SINGLE,
        declared=MatrixAxis(
            "scenario",
            read=scenarios.normalise_text,
            schema=scenarios.SCHEMA,
            value_in=lambda spec: spec.workload.scenario,
            part="workload",
            help="What a launch does: single, fresh, load:rate=50, load:bound=20ms, sustained:10; by comma.",
            example="single, fresh",
        ),
    ),
    Axis(
        "memory-limit-mb",
        "Memory limit",
        short_of=lambda c: f"{c.memory_limit_mb:,} MiB" if c.memory_limit_mb else "none",
        label_of=lambda c: f"memory limit {c.memory_limit_mb:,} MiB" if c.memory_limit_mb else "no memory limit",
        sort_key_of=lambda c: c.memory_limit_mb or MAX_MEMORY_LIMIT_MB,
        default=0,
        declared=MatrixAxis(
            "memory-limit-mb",
            read=readers.read_memory_limit,
            schema={"anyOf": [{"enum": ["none", 0]}, dict(readers.MEMORY_LIMIT.schema)]},
            value_in=lambda spec: spec.session.memory_limit_mb,
            part="session",
            help="MiB of address space that a cell's processes are held to, e.g. none,1024.",
            example="none, 1024",
        ),
    ),
    Axis(
        "runtime",
        "Runtime",
        short_of=lambda c: titles.runtime(c.runtime),
        sort_key_of=lambda c: runtime_sort_key(c.runtime),
        declared=MatrixAxis(
            "runtime",
            read=readers.read_runtime,
            schema={"type": "string", "pattern": r"^([a-z0-9][a-z0-9._-]*==)?[0-9][0-9A-Za-z.+-]*$"},
            value_in=lambda spec: spec.runtime,
        ),
    ),
)
BY_NAME: Mapping[str, Axis] = {axis.name: axis for axis in AXES}
# the axes whose value is a field of a CellSpec's session or workload, unchanged
FIELD_AXES: tuple[MatrixAxis, ...] = tuple(axis.declared for axis in AXES if axis.declared and axis.declared.part)


def order_axes(first: Iterable[str], last: Iterable[str] = ()) -> tuple[str, ...]:
    """List the names of `first`, of all other axes that a matrix may declare, in the order of AXES, and of `last`."""
    first, last = tuple(first), tuple(last)
    others = (axis.name for axis in AXES if axis.declared and axis.name not in {*first, *last})
    return (*first, *others, *last)


# In the product of a matrix the last axis varies fastest.
_MATRIX_ORDER = order_axes(
    ("opset", "runtime", "provider", "batch", "shapes", "precision", "threads", "session", "optimization"),
    ("hardware", "concurrency", "scenario"),
)
MATRIX_AXES: Mapping[str, MatrixAxis] = {
    name: declared for name in _MATRIX_ORDER if (declared := BY_NAME[name].declared) is not None
}
# Cells that do not fit into one block are split along the first axis first, and along the last one last.
SPLIT_ORDER = order_axes(
    ("hardware", "scenario", "shapes", "batch", "concurrency", "threads", "precision", "opset"),
    ("optimization", "session", "provider", "runtime", "model"),
)
# Comparisons along the first axis are shown and explained first.
ASKED_ORDER = order_axes(
    ("model", "runtime", "provider", "opset", "session", "optimization", "precision", "threads", "concurrency"),
    ("batch", "hardware", "shapes", "scenario"),
)

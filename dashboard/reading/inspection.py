"""What inspection found of a model and which releases load it, for its page.

Read key by key: what an older farm stored may lack some.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from dashboard.reading.facts import Fact
from farm.contract.cells import PROGRAM_ENDING
from farm.rules.cells import recipes
from farm.rules.generation import decoders
from farm.rules.planning import compiled
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted
from farm.rules.quality.findings import EXPLANATIONS
from farm.rules.runtimes import compatibility
from farm.rules.runtimes.compatibility import Row
from farm.rules.runtimes.models import CompiledFacts, ContextFacts, GenaiFacts
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import Sign, sign_of

if TYPE_CHECKING:
    from farm.registry.models import Version


OPERATORS_SHOWN = 30
# the first and the last release that say the same, and what
Range = tuple[str, str, Row]
COLUMNS: tuple[Column[Range], ...] = (
    Column("ONNX Runtime", lambda each: Entry(_releases(*each[:2]), is_name=True)),
    Column("Loads", lambda each: Entry(sign=_sign(each[2]), value=_sign(each[2]).word)),
    Prose("Why", lambda each: Entry("" if each[2].reason is None and not each[2].differs else each[2].sentence())),
    Number("Nodes run", lambda each: _nodes(each[2]), "as a trace counted them; other fusions, other counts"),
    Column(
        "Known by",
        lambda each: Entry(each[2].basis),
        "measured: a runner of this release was given the model; derived: from the model's stamps",
    ),
)


# an inspection as it is stored, as far as the page shows it
class Port(TypedDict, total=False):
    name: str
    dtype: str
    shape: list[int | str] | None


class Feed(TypedDict, total=False):
    sizes: dict[str, int]
    problem: str


class Found(TypedDict, total=False):
    id: str
    detail: str
    count: int
    where: list[str]


class Stored(TypedDict, total=False):
    opsets: dict[str, int]
    ir_version: int
    nodes: int
    nodes_below: int
    parameters: int
    parameters_bytes: int
    trees: int
    batch: int | str | None
    dims: list[str]
    dtypes: dict[str, int]
    is_quantised: bool
    custom_domains: list[str]
    producer: str
    inputs: list[Port]
    outputs: list[Port]
    operators: dict[str, int]
    findings: list[Found]
    feed: Feed | None
    compiled: dict[str, object] | None
    genai: dict[str, object] | None
    context: dict[str, object] | None


@dataclass(frozen=True)
class Named:
    """An input or output for the rules."""

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None


@dataclass(frozen=True)
class Finding:
    """`detail` is of this model, `why` and `fix` of every model; `where`: names of nodes or tensors."""

    weight: str
    title: str
    detail: str
    why: str = ""
    fix: str = ""
    where: str = ""


@dataclass(frozen=True)
class Program:
    """The framework's program beside a model. `saved_by`: the PyTorch that saved it; `problem`: why it cannot run."""

    name: str
    sha256: str
    bytes: int
    saved_by: str
    problem: str


@dataclass(frozen=True)
class Inspection:
    """Facts in a strip, findings in sentences, tables of inputs, outputs and operators."""

    facts: list[Fact]
    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def inspection(stored: Stored) -> Inspection:
    """A stored inspection as the page shows it."""
    return Inspection(
        facts=[fact for fact in _facts(stored) if fact.text],
        findings=[_finding(one) for one in stored.get("findings") or ()],
        tables=[_ports(stored), _operators(stored.get("operators") or {})],
    )


def program(version: "Version") -> Program | None:
    """The program that came with a version; None where there is none."""
    files = version.artifact.files.all()
    found = next((file for file in files if file.name.endswith(PROGRAM_ENDING)), None)
    if found is None:
        return None
    said = (version.inspection or {}).get("source") or {}
    return Program(
        found.name, found.blob.sha256, found.blob.bytes, str(said.get("saved_by") or ""), str(said.get("problem") or "")
    )


def _facts(stored: Stored) -> list[Fact]:
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in (stored.get("opsets") or {}).items())
    nodes, below = stored.get("nodes") or 0, stored.get("nodes_below") or 0
    return [
        Fact("Opset", opsets, is_name=True),
        Fact("IR", str(stored.get("ir_version") or "")),
        Fact("Nodes", numbers.fixed(nodes, 0) + (f" and {numbers.fixed(below, 0)} below" if below else "")),
        Fact("Parameters", _parameters(stored)),
        Fact("Batch", _batch(stored.get("batch"))),
        Fact("Dynamic dimensions", ", ".join(stored.get("dims") or ()), is_name=True),
        Fact("Generates", decoders.words_of(_named(stored.get("inputs")), _named(stored.get("outputs")))),
        Fact("Context", _context(stored.get("context"))),
        Fact("With onnxruntime-genai", _genai(stored.get("genai"))),
        Fact("Measured with", _sizes(stored.get("feed") or {}), is_name=True),
        Fact("Precision as uploaded", _uploaded(stored)),
        Fact("Compiled by", _compiled(stored.get("compiled")), is_name=True),
        Fact("Custom domains", ", ".join(stored.get("custom_domains") or ()), is_name=True),
        Fact("Producer", str(stored.get("producer") or "")),
    ]


def _named(ports: Sequence[Port] | None) -> list[Named]:
    return [
        Named(str(port.get("name")), str(port.get("dtype")), tuple(port.get("shape") or ()) or None)
        for port in ports or ()
    ]


def _context(found: object) -> str:
    """The longest sequence that a decoder takes, and what says so; empty where nothing does."""
    if not isinstance(found, Mapping):
        return ""
    told = ContextFacts.model_validate(found)
    return f"{numbers.fixed(told.tokens, 0)} tokens: {told.where}"


def _genai(found: object) -> str:
    """What its configuration says, or why it cannot generate; empty without one."""
    if not isinstance(found, Mapping):
        return ""
    told = GenaiFacts.model_validate(found)
    return told.problem or told.words


def _compiled(found: object) -> str:
    """By what the code inside the model was compiled, and for what."""
    return compiled.in_words(CompiledFacts.model_validate(found)) if found else ""


def _sizes(feed: Feed) -> str:
    """The sizes that inspection chose; why it found none."""
    sizes = " ".join(f"{name}={size}" for name, size in (feed.get("sizes") or {}).items())
    return str(feed.get("problem") or sizes)


def _uploaded(stored: Stored) -> str:
    return recipes.uploaded_words(
        stored.get("dtypes") or {}, stored.get("operators") or {}, is_quantised=bool(stored.get("is_quantised"))
    )


def _parameters(stored: Stored) -> str:
    count = stored.get("parameters")
    if not count:
        return f"{trees:,} trees" if (trees := stored.get("trees")) else ""
    return f"{_short(count)} in {numbers.size(stored.get('parameters_bytes'))}"


def _short(count: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{numbers.plain(count / size)} {unit}"
    return str(count)


def _batch(batch: int | str | None) -> str:
    if batch is None:
        return "the first dimension is not a batch"
    return f"fixed at {batch}" if isinstance(batch, int) else f"dynamic ({batch})"


def _finding(one: Found) -> Finding:
    name, count = str(one.get("id") or ""), int(one.get("count") or 1)
    known = EXPLANATIONS.get(name)
    detail = str(one.get("detail") or "")
    return Finding(
        weight=known.weight if known else "note",
        title=known.title if known else name.replace("_", " "),
        detail=detail if count == 1 else f"{detail} ({numbers.counted(count, 'place')})",
        why=known.why if known else "",
        fix=known.fix if known else "",
        where=numbers.listed(list(one.get("where") or ()), most=5),
    )


def _ports(stored: Stored) -> Table:
    columns: tuple[Column[tuple[str, Port]], ...] = (
        Column("Name", lambda each: Entry(str(each[1].get("name")), is_name=True)),
        Column("Side", lambda each: Entry(each[0])),
        Column("Type", lambda each: Entry(str(each[1].get("dtype")))),
        Column("Shape", lambda each: Entry(_shape(each[1].get("shape")), is_name=True)),
    )
    inputs = [("input", port) for port in stored.get("inputs") or ()]
    outputs = [("output", port) for port in stored.get("outputs") or ()]
    return Table.of("ports", "Inputs and outputs", columns, [*inputs, *outputs])


def _shape(shape: Sequence[int | str] | None) -> str:
    return "unknown rank" if shape is None else f"[{', '.join(map(str, shape))}]"


def _operators(operators: Mapping[str, int]) -> Table:
    ranked = sorted(operators.items(), key=lambda pair: -pair[1])[:OPERATORS_SHOWN]
    caption = f"Operators of the model ({numbers.counted(len(operators), 'kind')})"
    columns: tuple[Column[tuple[str, int]], ...] = (
        Column("Operator", lambda pair: Entry(pair[0])),
        Number("nodes", lambda pair: counted(pair[1])),
    )
    return Table.of("kinds", caption, columns, ranked)


@dataclass(frozen=True)
class Compatibility:
    """The panel."""

    sentence: str
    table: Table


def compatibility_panel(rows: Sequence[Row]) -> Compatibility:
    """The table of releases, newest first."""
    ranges = compatibility.in_ranges(rows)
    return Compatibility(
        sentence=compatibility.verdict(rows),
        table=Table.of("compatibility", "Which releases of ONNX Runtime load it", COLUMNS, list(reversed(ranges))),
    )


def _releases(first: str, last: str) -> str:
    return first if first == last else f"{first} – {last}"


def _nodes(row: Row) -> Entry:
    return Entry() if row.executed_nodes is None else counted(row.executed_nodes)


def _sign(row: Row) -> Sign:
    if row.reason is not None:
        return sign_of("refused")
    return Sign("≈", "other fusions", "warn") if row.differs else Sign("✓", "loads", "good")

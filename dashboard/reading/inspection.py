"""The inspection of a model as facts, findings and tables, and the panel that shows which releases load the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dashboard.reading.facts import Fact
from farm.contract.cells import PROGRAM_ENDING
from farm.rules.cells import recipes
from farm.rules.generation import decoders
from farm.rules.planning import compiled
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_count
from farm.rules.quality.findings import EXPLANATIONS
from farm.rules.runtimes import compatibility
from farm.rules.runtimes.compatibility import Row
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import Sign, sign_of

if TYPE_CHECKING:
    from farm.registry.models import Version
    from farm.workshop.inspection import FoundFinding, Port
    from farm.workshop.inspection import Inspection as Inspected


OPERATORS_SHOWN = 30
# the first and the last of neighbouring releases that give the same answer, and that answer
Range = tuple[str, str, Row]
COLUMNS: tuple[Column[Range], ...] = (
    Column(
        "ONNX Runtime", lambda each: Entry(each[0] if each[0] == each[1] else f"{each[0]} – {each[1]}", is_name=True)
    ),
    Column("Loads", lambda each: Entry(sign=_find_sign(each[2]), value=_find_sign(each[2]).word)),
    Prose("Why", lambda each: Entry("" if each[2].reason is None and not each[2].differs else each[2].sentence())),
    Number(
        "Nodes run",
        lambda each: Entry() if each[2].executed_nodes is None else as_count(each[2].executed_nodes),
        "as a trace counted them; other fusions, other counts",
    ),
    Column(
        "Known by",
        lambda each: Entry(each[2].basis),
        "measured: a runner of this release was given the model; derived: from the model's stamps",
    ),
)


@dataclass(frozen=True)
class Finding:
    """A finding. `weight`: how grave it is; `detail`: what was found in this model; `why` and `fix`: texts that are the
    same for every model; `where`: the names of at most five nodes or tensors, with the number of the others. A kind of
    finding without an explanation has the weight `note` and neither `why` nor `fix`."""

    weight: str
    title: str
    detail: str
    why: str = ""
    fix: str = ""
    where: str = ""


@dataclass(frozen=True)
class Program:
    """The PyTorch program that was uploaded with a model. `saved_by`: the PyTorch version that saved it, empty where it
    is not known; `problem`: why the program cannot run, else empty. Both are empty before the version was inspected."""

    name: str
    sha256: str
    bytes: int
    saved_by: str
    problem: str


@dataclass(frozen=True)
class Inspection:
    """The inspection as the page shows it. `tables`: the inputs and outputs, then the operators."""

    facts: list[Fact]
    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def make_inspection(found: "Inspected") -> Inspection:
    """Make the inspection for the page. Facts without a text are left out, and only the OPERATORS_SHOWN most frequent
    operators are listed."""
    return Inspection(
        facts=[fact for fact in _list_facts(found) if fact.text],
        findings=[_make_finding(finding) for finding in found.findings],
        tables=[_make_ports_table(found), _make_operators_table(found.operators)],
    )


def make_program(version: "Version", found: "Inspected | None") -> Program | None:
    """Describe the PyTorch program that was uploaded with a version; None where there is none. `found`: the version's
    inspection, None before it was inspected."""
    files = version.artifact.files.all()
    file = next((file for file in files if file.name.endswith(PROGRAM_ENDING)), None)
    if file is None:
        return None
    source = found.source if found is not None else None
    saved_by, problem = (source.saved_by, source.problem) if source is not None else ("", "")
    return Program(file.name, file.blob.sha256, file.blob.bytes, saved_by, problem)


def _list_facts(found: "Inspected") -> list[Fact]:
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in found.opsets.items())
    below = f" and {numbers.fixed(found.nodes_below, 0)} below" if found.nodes_below else ""
    precision = recipes.describe_uploaded(found.dtypes, found.operators, is_quantised=found.is_quantised)
    context, genai, feed = found.context, found.genai, found.feed
    sizes = " ".join(f"{name}={size}" for name, size in feed.sizes.items()) if feed else ""
    return [
        Fact("Opset", opsets, is_name=True),
        Fact("IR", str(found.ir_version or "")),
        Fact("Nodes", f"{numbers.fixed(found.nodes, 0)}{below}"),
        Fact("Parameters", _describe_parameters(found)),
        Fact("Batch", _describe_batch(found.batch)),
        Fact("Dynamic dimensions", ", ".join(found.dims), is_name=True),
        Fact("Generates", decoders.describe_generation(found.inputs, found.outputs)),
        Fact("Context", f"{numbers.fixed(context.tokens, 0)} tokens: {context.where}" if context else ""),
        Fact("With onnxruntime-genai", genai.problem or genai.words if genai else ""),
        Fact("Measured with", (feed.problem if feed else "") or sizes, is_name=True),
        Fact("Precision as uploaded", precision),
        Fact("Compiled by", compiled.describe_compiled(found.compiled) if found.compiled else "", is_name=True),
        Fact("Custom domains", ", ".join(found.custom_domains), is_name=True),
        Fact("Producer", found.producer),
    ]


def list_guesses(found: "Inspected | None") -> list[Fact]:
    """List as facts what the inspection guessed about batch, sizes and precision. Each fact's note names the form field
    that overrides it. Empty before the version was inspected."""
    if found is None:
        return []
    by_field = {"Batch": "Batch sizes", "Measured with": "Sizes", "Precision as uploaded": "Precisions"}
    guessed = (fact for fact in _list_facts(found) if fact.name in by_field and fact.text)
    return [replace(fact, note=f"The field {by_field[fact.name]} says otherwise.") for fact in guessed]


def _describe_parameters(found: "Inspected") -> str:
    if not found.parameters:
        return f"{found.trees:,} trees" if found.trees else ""
    units = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
    size, unit = next((known for known in units if found.parameters >= known[0]), (1, ""))
    count = f"{numbers.plain(found.parameters / size)} {unit}" if unit else str(found.parameters)
    return f"{count} in {numbers.size(found.parameters_bytes)}"


def _describe_batch(batch: int | str | None) -> str:
    if batch is None:
        return "the first dimension is not a batch"
    return f"fixed at {batch}" if isinstance(batch, int) else f"dynamic ({batch})"


def _make_finding(found: "FoundFinding") -> Finding:
    known = EXPLANATIONS.get(found.id)
    return Finding(
        weight=known.weight if known else "note",
        title=known.title if known else found.id.replace("_", " "),
        detail=found.detail if found.count == 1 else f"{found.detail} ({numbers.counted(found.count, 'place')})",
        why=known.why if known else "",
        fix=known.fix if known else "",
        where=numbers.listed(list(found.where), most=5),
    )


def _make_ports_table(found: "Inspected") -> Table:
    columns: tuple[Column[tuple[str, Port]], ...] = (
        Column("Name", lambda each: Entry(each[1].name, is_name=True)),
        Column("Side", lambda each: Entry(each[0])),
        Column("Type", lambda each: Entry(each[1].dtype)),
        Column("Shape", lambda each: Entry(_describe_shape(each[1].shape), is_name=True)),
    )
    inputs, outputs = [("input", port) for port in found.inputs], [("output", port) for port in found.outputs]
    return Table.of("ports", "Inputs and outputs", columns, [*inputs, *outputs])


def _describe_shape(shape: Sequence[int | str] | None) -> str:
    return "unknown rank" if shape is None else f"[{', '.join(map(str, shape))}]"


def _make_operators_table(operators: Mapping[str, int]) -> Table:
    ranked = sorted(operators.items(), key=lambda pair: -pair[1])[:OPERATORS_SHOWN]
    caption = f"Operators of the model ({numbers.counted(len(operators), 'kind')})"
    columns: tuple[Column[tuple[str, int]], ...] = (
        Column("Operator", lambda pair: Entry(pair[0])),
        Number("nodes", lambda pair: as_count(pair[1])),
    )
    return Table.of("kinds", caption, columns, ranked)


@dataclass(frozen=True)
class Compatibility:
    """The panel that shows which releases load a model."""

    sentence: str
    table: Table


def compatibility_panel(rows: Sequence[Row]) -> Compatibility:
    """Make the panel: a sentence, and a table with the newest releases first, in which neighbouring releases with the
    same answer share a row. `rows`: a row for each release, the oldest first."""
    ranges = compatibility.group_by_answer(rows)
    return Compatibility(
        sentence=compatibility.verdict_sentence(rows),
        table=Table.of("compatibility", "Which releases of ONNX Runtime load it", COLUMNS, list(reversed(ranges))),
    )


def _find_sign(row: Row) -> Sign:
    if row.is_untried:
        return Sign("?", "not tried", "quiet")
    if row.reason is not None:
        return sign_of("refused")
    return Sign("≈", "other fusions", "warn") if row.differs else Sign("✓", "loads", "good")

"""`onnxfarm inspect MODEL`: shows a model's inputs, outputs, opsets, operators and findings, without a farm."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Column

from farm.rules.generation import decoders
from farm.rules.quality.findings import EXPLANATIONS
from farm.rules.runtimes import compatibility as rules
from farm.rules.runtimes.compatibility import Row, Stamps
from farm.rules.wording.numbers import size
from onnxfarm.commands.options import JsonOption
from onnxfarm.disk_space import check_free_space
from onnxfarm.model_files import derive_model_name, list_model_files
from onnxfarm.outputs import make_console, make_table, print_lines
from onnxfarm.problems import Usage, exit_with_problem, require_extra

if TYPE_CHECKING:
    from farm.workshop.inspection import FoundFinding, Inspection

MAX_OPERATORS = 12
WAY_OUT = "Make room there, or set TMPDIR to a folder elsewhere."


@exit_with_problem()
def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx; its external data is found beside it.")],
    compatibility: Annotated[
        bool, typer.Option("--compatibility", help="Show which releases of ONNX Runtime load it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a model's inputs, outputs, opsets, operators and findings. No farm is needed."""
    facts = inspect_model(model)
    if as_json:
        plain = facts.model_dump(mode="json")
        if compatibility:
            plain["compatibility"] = rules.table_as_plain(list_compatibility(facts))
        sys.stdout.write(json.dumps(plain, indent=2) + "\n")
        return
    console = Console()
    _show(model, facts, console=console)
    if compatibility:
        _show_compatibility(list_compatibility(facts), console=console)


def list_compatibility(facts: "Inspection") -> list[Row]:
    """List whether each known release of ONNX Runtime loads the model, the oldest first. Nothing is run."""
    return rules.compatibility_rows(Stamps(facts.opsets, facts.ir_version, facts.custom_domains, facts.unused_opsets))


def _show_compatibility(rows: list[Row], *, console: Console) -> None:
    console.print(f"\n{rules.verdict_sentence(rows)}\n", style="bold", highlight=False)
    table = make_table(Column("ONNX Runtime", no_wrap=True), Column(""), Column("known by", no_wrap=True))
    for first, last, row in rules.group_by_answer(rows):
        table.add_row(first if first == last else f"{first} – {last}", row.sentence(), row.basis)
    console.print(table)


def inspect_model(model: Path) -> "Inspection":
    """Inspect a copy of a model in the sandbox, and find inputs that it runs with.

    Raises Usage if the model cannot be used, also for a .zip, and Infrastructure if the disk is full or a package is
    missing.
    """
    with require_extra("node"):
        from farm.workshop import orders
        from onnxfarm.here.progress import print_periodically
    files = list_model_files(model)
    if model.suffix.lower() == ".zip":
        raise Usage(f"{model.name} is a zip: unpack it and give the .onnx in it.")
    total = sum(path.stat().st_size for path in files)
    with (
        tempfile.TemporaryDirectory(prefix="onnxfarm-inspect-") as folder,
        check_free_space(Path(folder), needed_bytes=total, way_out=WAY_OUT),
        print_periodically(f"reading {model.name}, {size(total)}", console=make_console(stderr=True)),
    ):
        for path in files:
            shutil.copyfile(path, Path(folder) / path.name)
        main = files[0].name
        facts = orders.inspect(Path(folder), main)
        if facts.problem is None:
            with tempfile.TemporaryDirectory(prefix="onnxfarm-tried-") as scratch:
                feed = orders.choose_feed(Path(folder), main, out_dir=Path(scratch))
            facts = facts.model_copy(update={"feed": feed})
    if facts.problem is not None:
        raise Usage(facts.problem.text)
    return facts


def _show(model: Path, facts: "Inspection", *, console: Console) -> None:
    title = f"\n{derive_model_name(model) or model.name}: {_summarise(facts)}\n"
    console.print(title, style="bold", highlight=False, markup=False)
    # long cells fold and are never cut, because --shape needs the names of dimensions
    table = make_table("", "name", "type", "shape")
    for kind, ports in (("input", facts.inputs), ("output", facts.outputs)):
        for port in ports:
            shape = "unknown rank" if port.shape is None else "×".join(map(str, port.shape)) or "scalar"
            table.add_row(kind, port.name, port.dtype, shape)
    console.print(table)
    print_lines(
        *_list_dynamic_sizes(facts), *_describe_generation(facts), *_describe_default_feed(facts), console=console
    )
    top = sorted(facts.operators.items(), key=lambda entry: -entry[1])[:MAX_OPERATORS]
    console.print(f"operators: {', '.join(f'{count} {name}' for name, count in top)}", highlight=False, markup=False)
    for finding in facts.findings:
        print_lines(_describe_finding(finding), console=console)
    if not facts.findings:
        console.print("no findings", highlight=False)


def _list_dynamic_sizes(facts: "Inspection") -> Iterator[str]:
    """Yield the dynamic dimensions of the inputs, by name, each once."""
    dims = [dim for port in facts.inputs for dim in port.shape or ()]
    sizes = list(dict.fromkeys(dim for dim in dims if isinstance(dim, str)))
    if sizes:
        yield f"dynamic sizes (--shape NAME=SIZE): {', '.join(sizes)}"


def _describe_generation(facts: "Inspection") -> Iterator[str]:
    if words := decoders.describe_generation(facts.inputs, facts.outputs):
        yield f"generates: {words}" + (f", {facts.context.words}" if facts.context is not None else "")
        if not decoders.generation_problem(facts.inputs, facts.outputs):
            yield decoders.HINT
    if facts.genai is not None:
        yield f"! {facts.genai.problem}" if facts.genai.problem else f"onnxruntime-genai: {facts.genai.words}"


def _describe_default_feed(facts: "Inspection") -> Iterator[str]:
    """Yield the inputs that the model is measured with by default, or why it cannot be."""
    feed = facts.feed
    if feed is None:
        return
    if feed.problem:
        yield f"! {feed.problem}"
        return
    sizes = " ".join(f"{name}={size}" for name, size in feed.sizes.items())
    fills = " ".join(f"{name}={text}" for name, text in feed.inputs.items())
    yield f"measured by default with: {', '.join(part for part in (sizes, fills) if part)}"


def _summarise(facts: "Inspection") -> str:
    parts = [
        f"{facts.nodes} nodes",
        *([f"{facts.trees:,} tree{'' if facts.trees == 1 else 's'}"] if facts.trees else []),
        *([f"{facts.parameters:,} parameters"] if facts.parameters or not facts.trees else []),
        size(facts.main_bytes + facts.data_bytes),
        *(f"{domain or 'opset'} {version}" for domain, version in facts.opsets.items()),
        f"IR {facts.ir_version}",
        *([f"as uploaded: {facts.uploaded}"] if facts.uploaded else []),
    ]
    return ", ".join(parts)


def _describe_finding(finding: "FoundFinding") -> str:
    explanation = EXPLANATIONS.get(finding.id)
    count = f" ({finding.count}×)" if finding.count > 1 else ""
    # nearly every model has findings of the weight `note`, so they get no warning sign
    sign = "·" if explanation is not None and explanation.weight == "note" else "!"
    return f"{sign} {finding.id}: {finding.detail}{count}" + (
        f" {explanation.why} {explanation.fix}" if explanation else ""
    )

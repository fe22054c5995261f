"""What the product says of a recorded document: read again, on a terminal, as CSV, as a gate, in a report, compared.

`python -m tests.recorded.presenting` writes that beside every document, in NAME.txt; test_recorded.py compares.
"""

import io
import json
import lzma
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from typer.testing import CliRunner

from dashboard.figures import cell_bars, latency, ratios, throughput
from dashboard.reading import comparisons
from farm.contract.cells import CellSpec
from farm.contract.divergence import DivergenceDocument
from farm.contract.document import SCHEMA, Document
from farm.rules.changes import gate, gate_reports, report
from farm.rules.comparing.sides import find_comparison
from farm.rules.findings.kinds import CHECKS
from farm.rules.presenting import sentences
from farm.rules.presenting.spreadsheets import make_csv
from farm.rules.presenting.tables import Entry
from farm.rules.reporting import documents
from onnxfarm import screen
from onnxfarm.commands import diverge, sweep
from onnxfarm.here import sweep as here_sweep
from onnxfarm.main import app

HERE = Path(__file__).parent
WIDTHS = (160, 80)
# of what is recorded twice, so that the second can be compared with the first
LATER = "later"


def recorded() -> list[Path]:
    """Every recorded document."""
    return sorted(HERE.glob("*/*.json.xz"))


def read(path: Path) -> str:
    """The document's text."""
    return lzma.decompress(path.read_bytes()).decode()


def expected_path(path: Path) -> Path:
    """Where what is said of it stands."""
    return path.with_name(f"{path.name.removesuffix('.json.xz')}.txt")


def present(path: Path) -> str:
    """All that is said of a document, a part under a heading each."""
    plain = json.loads(read(path))
    parts = {SCHEMA: _of_bench, "onnxfarm.sweep/1": _of_sweep, "onnxfarm.divergence/1": _of_divergence}
    said = dict(parts.get(plain["schema"], _of_plain)(plain))
    if path.name.startswith(LATER):
        said |= _beside_single(path)
    return "".join(f"━━━ {name}\n{text.rstrip()}\n\n" for name, text in said.items())


def _of_bench(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    document = Document.model_validate(plain)
    yield "read and written again", "\n".join(sorted(set(_changes(plain, json.loads(document.to_json())))))
    yield "its sentence, told again", documents.add_sentence(document).sentence
    for width in WIDTHS:
        console = _console(width)
        screen.show(document, console=console, address=document.url or "")
        yield f"terminal, {width} wide", _printed(console)
    yield "CSV", make_csv(document).replace("\r\n", "\n")
    yield from _gated(document)
    yield from _drawn(document)


def _gated(document: Document) -> Iterator[tuple[str, str]]:
    """The first two runtimes as a gate's sides, and a report of their first pair."""
    sides = list(dict.fromkeys(cell.runtime for cell in document.cells))[:2]
    if len(sides) < 2:
        return
    answer = gate.judge_gate(document, old=sides[0], new=sides[1], fail_on=CHECKS)
    yield "gate: Markdown", gate_reports.as_markdown(answer, document)
    yield "gate: JUnit XML", gate_reports.as_junit(answer, document)
    entries = gate_reports.as_benchmark_entries(answer, document)
    yield "gate: benchmark entries", json.dumps(entries, indent=1, ensure_ascii=False)
    cells = {cell.id: cell for cell in document.cells}
    for old, new in answer.pairs[:1]:
        found = find_comparison(document, old, new)
        told = sentences.comparison_sentence(found, cells) if found is not None else sentences.cell_sentence(cells[new])
        spec = CellSpec(artifact_sha256="a" * 64, runtime=cells[new].runtime)
        case = report.Case(document, cells[old], cells[new], spec, "model.onnx", told)
        for name in ("README.md", "issue.md", "lock-new.txt", "repeat.json", "matrix.json"):
            yield f"report: {name}", report.render_files(case)[name]


def _drawn(document: Document) -> Iterator[tuple[str, str]]:
    """The run's page as its figures say it: title, summary, and the table below each."""
    cells = {cell.id: cell for cell in document.cells}
    along = comparisons.select_axis(document.comparisons, "runtime", cells)
    figures = [
        latency.draw_latency(document.cells, document.comparisons, _address),
        throughput.draw_throughput(document.cells, _address, document.comparisons),
        cell_bars.draw_providers(document.cells, _address),
        ratios.draw_ratios(comparisons.name_comparisons(along, cells, _address)),
    ]
    for figure in figures:
        rows = [" | ".join(_entry(entry) for entry in row) for row in figure.table.rows]
        heads = " | ".join(head.text for head in figure.table.heads)
        yield f"figure: {figure.name}", "\n".join([figure.title, figure.summary, heads, *rows])


def _entry(entry: Entry) -> str:
    """A table's entry: its text, the value behind it, the page it leads to."""
    value = "" if entry.value is None else f"({entry.value!r})"
    return " ".join(part for part in (entry.text, value, entry.href) if part)


def _of_sweep(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    swept = cast(Any, plain)
    console = _console(WIDTHS[0])
    sweep.show(swept, console=console)
    yield "terminal", _printed(console)
    yield "figure", json.dumps(here_sweep.make_figure(swept), indent=1, ensure_ascii=False)
    page = here_sweep.render_page(swept)
    yield "page: its tables", page[page.index("<h2>") :].replace("</tr>", "</tr>\n").partition("<script")[0]


def _of_divergence(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    document = DivergenceDocument.model_validate(plain)
    yield "read and written again", "\n".join(sorted(set(_changes(plain, json.loads(document.to_json())))))
    console = _console(WIDTHS[0])
    diverge._show(document, out=Path("out"), console=console)
    yield "terminal", _printed(console)


def _of_plain(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Of a document that no code of ours reads again: its keys, which whoever reads it counts on."""
    yield "keys", "\n".join(sorted(set(_keys(plain))))


def _beside_single(later: Path) -> dict[str, str]:
    """`onnxfarm compare` of the document recorded before it and this one."""
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder) / name for name in ("single.json", "later.json")]
        for name in names:
            name.write_text(read(later.with_name(f"{name.name}.xz")), encoding="utf-8")
        done = CliRunner().invoke(app, ["compare", *map(str, names)])
        answer = CliRunner().invoke(app, ["compare", *map(str, names), "--json"]).stdout
        told = done.stdout.replace(f"{folder}/", "")
        figures = json.dumps(json.loads(answer.replace(f"{folder}/", "")), indent=1, ensure_ascii=False)
    return {"compared with single: terminal": told, "compared with single: JSON": figures}


def _changes(old: object, new: object, place: str = "") -> Iterator[str]:
    """What reading changed: keys that were added or dropped, values that are others."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from (f"added {place}.{name}: {new[name]!r}" for name in new.keys() - old.keys())
        yield from (f"dropped {place}.{name}" for name in old.keys() - new.keys())
        for name in old.keys() & new.keys():
            yield from _changes(old[name], new[name], f"{place}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for before, after in zip(old, new, strict=True):
            yield from _changes(before, after, f"{place}[]")
    elif old != new:
        yield f"changed {place}: {old!r} → {new!r}"


def _keys(plain: object, place: str = "") -> Iterator[str]:
    if isinstance(plain, dict):
        for name, value in plain.items():
            yield f"{place}.{name}"
            yield from _keys(value, f"{place}.{name}")
    elif isinstance(plain, list):
        for value in plain:
            yield from _keys(value, f"{place}[]")


def _address(cell: str) -> str:
    return f"/runs/1/cells/{cell}/"


def _console(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)


def _printed(console: Console) -> str:
    return "\n".join(line.rstrip() for line in cast(io.StringIO, console.file).getvalue().splitlines())


if __name__ == "__main__":
    for document in recorded():
        expected_path(document).write_text(present(document), encoding="utf-8")
        print(f"{expected_path(document)} written")

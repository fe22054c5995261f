"""The Pareto picture of a real race for docs/screens: latency, accuracy and peak memory of its final block.

    python -m tests.bench.find_picture OUT.png [--minutes 4] [--ort 1.31.1]

It races SPACE with the digits sample on this machine, as `onnxfarm find digits.onnx --evaluation digits.evaluation.npz
--calibration digits.calibration.npz` does, and draws the final block by the server's own renderer. pngquant has to be
on PATH.
"""

import argparse
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

from dashboard.figures import accuracies, pareto
from dashboard.figures.figure import Figure
from farm.contract.document import Document
from farm.rules.matrices.matrix import parse
from farm.rules.planning.plans import Plan
from farm.rules.searches.limits import Limits
from farm.workshop.samples import builders
from onnxfarm.here import find, workbench
from onnxfarm.here.home import default_home
from onnxfarm.outputs import make_console
from onnxfarm.subject import Subject
from tests.acceptance.browser.chromium import launched

SPACE = {"precision": ["fp32", "fp16", "int8-dynamic", "int8-qdq", "int8-qdq:per-channel"], "threads": 1, "batch": 64}
CSS = Path(__file__).parents[2] / "dashboard" / "static" / "dashboard" / "farm.css"
PAGE = """<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><style>{css}</style><body>
<main><figure class="stack panel"><h3>{title}</h3><div class="chart" style="{room}"><svg class="plot">{picture}</svg>
</div><p class="soft small">{note}</p></figure></main></body></html>"""


def race(folder: Path, *, minutes: float, ort: str) -> Document:
    """Race the digits sample, and return the document of the final block."""
    files = {path.name: path for path in builders.write_all(folder)}
    documents: list[Document] = []
    subject, console = Subject(files["digits.onnx"]), make_console(stderr=True)
    with workbench.open_workbench(subject, home=default_home(), console=console) as bench:
        bench.set_evaluation(files["digits.evaluation.npz"], "")
        bench.set_calibration(files["digits.calibration.npz"])
        measure = bench.measure

        def keep(plan: Plan) -> Document:
            documents.append(measure(plan))
            return documents[-1]

        bench.measure = keep  # type: ignore[method-assign]
        space = parse({**SPACE, "runtime": ort})
        question = find.RaceRequest("digits.onnx", limits=Limits(has_labels=True), minutes=minutes)
        found = find.run_race(bench, space, question)
    print(found.sentence, file=sys.stderr)
    return documents[-1]


def take_picture(figure: Figure, out: Path) -> None:
    texts = {"title": escape(figure.title), "note": escape(figure.note), "room": figure.room}
    page_text = PAGE.format(css=CSS.read_text(encoding="utf-8"), picture=figure.picture, **texts)
    with launched() as browser:
        page = browser.new_page(viewport={"width": 860, "height": 700})
        page.set_content(page_text)
        page.locator("figure").screenshot(path=out)
    subprocess.run(["pngquant", "--force", "--output", out, out], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--ort", default="1.31.1")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        document = race(Path(folder), minutes=given.minutes, ort=given.ort)
    figure = pareto.draw_cells(document.cells, str, document.comparisons, accuracies.PEAK_MEMORY)
    take_picture(figure, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The files of a gate: Markdown, JUnit XML, benchmark entries, the document."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from farm.rules.changes import gate_reports
from onnxfarm.outputs import write_document, write_plain, write_text
from onnxfarm.problems import Usage

if TYPE_CHECKING:
    from farm.rules.searches.gate import GateOutcome

# GitHub Actions shows what a step adds to the file that this names
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def write(
    outcome: "GateOutcome",
    *,
    summary: Path | None,
    junit: Path | None,
    benchmark_json: Path | None,
    json_file: Path | None,
) -> None:
    """Write what was asked for. Raises Usage for a file that cannot be written."""
    answer, document = outcome.answer, outcome.document
    markdown = gate_reports.as_markdown(answer, document)
    if summary is not None:
        write_text(markdown, summary)
    if step := os.environ.get(STEP_SUMMARY):
        _append(markdown, Path(step))
    if junit is not None:
        write_text(gate_reports.as_junit(answer, document), junit)
    write_plain(gate_reports.as_benchmark_entries(answer, document), benchmark_json)
    write_document(document, json_file)


def _append(text: str, path: Path) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise Usage(f"${STEP_SUMMARY} names {path}, which cannot be written ({problem.strerror}).") from problem

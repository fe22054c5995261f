"""The pytest fixture `onnx_gate`, for tests that fail if a model is slower than another, or wrong.

Every pytest in an environment with onnxfarm imports this module, so it imports little and runs the gate as a process.
If pytest has several workers, only one measures at a time. A test's report says which measurement it waited for.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onnxfarm import gate_process

BUDGETS = ("quick", "standard", "precise")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("onnxfarm")
    group.addoption(
        "--onnxfarm-budget", choices=BUDGETS, help="how much every onnx_gate measures, whatever its test says"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "onnx_gate(**options): what the fixture onnx_gate is given where a call says nothing"
    )


@dataclass(frozen=True)
class OnnxGate:
    """Runs `onnxfarm gate` in a test, when called. Paths are relative to pytest's root folder."""

    request: pytest.FixtureRequest

    def __call__(self, model: str | Path, **options: object) -> dict[str, Any]:
        """Run the gate on a model, and return the bench document as plain values; empty if nothing was measured.

        `options` are those of `onnxfarm gate`, with _ for -: `against="git:origin/main"`, `max_slowdown="5 %"`. They
        override those of the marker `onnx_gate`; if several markers set an option, that of the closest one to the test
        counts. The budget of --onnxfarm-budget overrides all. In an environment with CI set, --ci is added.
        Adds the answer to the test's report, and the comparisons to its `user_properties`. Raises AssertionError if the
        gate fails, and RuntimeError with the reason for any other exit code except 0.
        """
        # pytest yields the closest marker first
        marks = reversed(list(self.request.node.iter_markers("onnx_gate")))
        mark_options = {name: value for mark in marks for name, value in mark.kwargs.items()}
        gate_options = {**mark_options, **options}
        if budget := self.request.config.getoption("--onnxfarm-budget"):
            gate_options["budget"] = budget
        with tempfile.TemporaryDirectory(prefix="onnxfarm-pytest-") as folder:
            comment, document = Path(folder) / "comment.md", Path(folder) / "document.json"
            arguments = ["--ci"] * bool(os.environ.get("CI"))
            arguments += [f"--{name.replace('_', '-')}={value}" for name, value in gate_options.items()]
            arguments += [f"--comment={comment}", f"--json={document}", "--", str(model)]
            command = [sys.executable, "-m", "onnxfarm.main", "gate", *arguments]
            root = self.request.config.rootpath
            process = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
            answer = comment.read_text() if comment.exists() else ""
            bench_document = json.loads(document.read_text()) if document.exists() else {}
        code = gate_process.compute_exit_code(process.returncode, is_judged=bool(answer))
        if not answer or gate_process.is_broken(code):
            answer = gate_process.explain_end(code, process.stderr.strip().rpartition("\n")[2])
        self._report(answer, process.stderr, bench_document)
        if code:
            raise (AssertionError if code == gate_process.FAILED else RuntimeError)(answer)
        return bench_document

    def _report(self, answer: str, printed: str, document: dict[str, Any]) -> None:
        node = self.request.node
        waits = [line for line in printed.splitlines() if "measuring on this machine" in line]
        node.add_report_section("call", "onnxfarm", "\n".join([*waits, answer]))
        for pair in document.get("comparisons", ()):
            for name in ("verdict", "ratio", "ci_low", "ci_high", "smallest_detectable"):
                node.user_properties.append((f"onnxfarm.{pair['axis']}.{name}", str(pair[name])))


@pytest.fixture
def onnx_gate(request: pytest.FixtureRequest) -> OnnxGate:
    """A function that compares a model with another, and fails the test as `onnxfarm gate` fails."""
    return OnnxGate(request)

"""Pages of a run that generates: what it draws, its tokens with the first that differs, and its prompt's operators."""

import re
from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.contract import reports
from farm.contract.blocks import ArmOrder
from farm.contract.cells import CellSpec
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.cells import scenarios
from farm.rules.cells.generate import Generate
from farm.rules.presenting.prefills import ITEMS_NOTE
from farm.runs.models import Run
from farm.runs.services import conclude_runs
from tests.integration.dashboard import rows
from tests.integration.dashboard.pages import assert_is_page

PORTS: dict[str, list[dict[str, Any]]] = {
    "inputs": [
        {"name": "input_ids", "dtype": "int64", "shape": ["batch", "sequence"]},
        {"name": "past_key_values.0.key", "dtype": "float32", "shape": ["batch", 2, "past", 64]},
        {"name": "past_key_values.0.value", "dtype": "float32", "shape": ["batch", 2, "past", 64]},
    ],
    "outputs": [
        {"name": "logits", "dtype": "float32", "shape": ["batch", "sequence", 1000]},
        {"name": "present.0.key", "dtype": "float32", "shape": ["batch", 2, "total", 64]},
        {"name": "present.0.value", "dtype": "float32", "shape": ["batch", 2, "total", 64]},
    ],
}
DECLARED = {"runtime": ["1.29.0", "1.31.1"], "threads": [1], "scenario": ["generate:prompt=16:new=8"]}


class Generating(rows.MadeUpNode):
    """Made up too: the newer release takes longer over the prompt alone, and its fifth token is another."""

    def _sample(self, spec: CellSpec) -> reports.Sample:
        told = scenarios.of_cell(spec)
        assert isinstance(told, Generate)
        first = told.prompt * 0.1 * self.slow.get(str(spec.runtime), 1.0)
        made = super()._sample(
            spec.model_copy(update={"runtime": spec.runtime.model_copy(update={"version": "1.29.0"})})
        )
        tokens = list(range(100, 100 + told.new))
        if spec.runtime.version == "1.31.1":
            tokens[4] = 7
        stretch = {"position": told.prompt + 4.0, "tpot_ms": made.p50_ms}
        metrics = {"tpot_ms": made.p50_ms, "ttft_ms": first, "tokens_per_s": 900.0, "outside_ms": 0.01}
        phases = (
            reports.Phase(name="prefill", metrics={"prefill_ms": first}),
            reports.Phase(name="tokens 2 to 8", metrics=stretch),
        )
        gaps = (0.5,) * told.new
        return made.model_copy(update={"tokens": tuple(tokens), "metrics": metrics, "phases": phases, "gaps": gaps})

    def _trace(self, arm: ArmOrder, trace_round: int) -> reports.TraceReport:
        made = super()._trace(arm, trace_round)
        prompt = reports.PromptTrace(tokens=16, runs=5, run_us=900.0, operators=made.operators)
        return made.model_copy(update={"prompt": prompt, "operators": made.operators[-1:]})


def run_of(version: Version, node: Node, owner: User, declared: dict[str, Any]) -> Run:
    assert version.inspection is not None
    version.inspection = {**version.inspection, **PORTS, "batch": "batch", "dims": ["batch"]}
    version.save(update_fields=["inspection"])
    begun = rows.begin_run(version, owner, matrix={"matrix": declared, "budget": "quick"})
    Generating(node).measure(begun)
    conclude_runs()
    return Run.objects.get(pk=begun.pk)


@pytest.fixture
def generating(version: Version, node: Node, owner: User) -> Run:
    return run_of(version, node, owner, DECLARED)


def test_a_run_opens_with_its_phases(signed_in: Client, generating: Run) -> None:
    text = assert_is_page(signed_in.get(f"/runs/{generating.pk}/"))
    assert "Prefill is 24" in text
    assert "SkipLayerNormalization explains" in text
    assert "Prefill and decoding" in text
    assert "prompt 16, 8 new" in text
    assert "Times are of one new token; the chart has the prompt, which is read before." in text
    assert "outside the graph" in text


@pytest.mark.parametrize("chart", ["phases", "tokens"])
def test_each_drawing_stands_as_a_table_too(signed_in: Client, generating: Run, chart: str) -> None:
    page = signed_in.get(f"/runs/{generating.pk}/?chart={chart}")
    assert_is_page(page)
    assert f'id="{chart}' in page.content.decode()


def test_one_length_of_prompt_draws_no_line_over_lengths(signed_in: Client, generating: Run) -> None:
    assert "First token" not in assert_is_page(signed_in.get(f"/runs/{generating.pk}/"))


def test_several_lengths_do(signed_in: Client, version: Version, node: Node, owner: User) -> None:
    lengths = ["generate:prompt=16:new=8", "generate:prompt=64:new=8"]
    run = run_of(version, node, owner, {**DECLARED, "scenario": lengths})
    text = assert_is_page(signed_in.get(f"/runs/{run.pk}/?chart=first-token"))
    assert "behind 16 tokens" in text
    assert "behind 64" in text


def test_the_first_token_that_differs_is_marked_beside_those_of_the_first_cell(signed_in: Client, generating: Run):
    page = signed_in.get(f"/runs/{generating.pk}/cells/c2/")
    text = assert_is_page(page)
    assert "Token 5 of 8 is 7, where c1 chose 104: its two best scores were 0.5 apart." in text
    assert page.content.decode().count("<mark>") == 2
    assert "<mark>104</mark>" in page.content.decode()
    assert "marked: the first that differs, token 5" in text
    assert "Executed operators over a prompt of 16, from a trace" in text
    assert "Executed operators of a token, from a trace" in text
    assert "outside the graph" in text
    assert "µs per token" in text
    assert " a token" in text


def test_a_first_cell_shows_its_own_tokens_alone(signed_in: Client, generating: Run) -> None:
    page = signed_in.get(f"/runs/{generating.pk}/cells/c1/")
    assert "Tokens 1 to 8 of 8." in assert_is_page(page)
    assert "<mark>" not in page.content.decode()


def test_a_cell_that_generates_nothing_has_no_such_panel(signed_in: Client, run: Run) -> None:
    assert "What was generated" not in assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/c1/"))
    assert "Times are of one new token" not in assert_is_page(signed_in.get(f"/runs/{run.pk}/"))


def test_batches_of_sequences_are_compared_by_tokens_per_second(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    run = run_of(version, node, owner, {**DECLARED, "runtime": ["1.31.1"], "batch": [1, 4]})
    text = assert_is_page(signed_in.get(f"/runs/{run.pk}/"))
    assert f"Items are {ITEMS_NOTE}; the chart has the prompt, which is read before." in text
    assert "▲ more items/s than its row’s baseline" in text
    assert re.search(r"\d tokens/s", text)

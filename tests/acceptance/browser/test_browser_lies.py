"""A tab that lies is refused like any node: the forged messages of the node API's tests, sent from JavaScript."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.acceptance.browser.tabs import PHONE, opened
from tests.acceptance.conftest import LiveFarm, accepted
from tests.conftest import MODELS
from tests.integration.node_api.test_bad_input import BAD

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]
LIES = (Path(__file__).parent / "lies.js").read_text("utf-8")
MATRIX = {
    "matrix": {"runtime": ["onnxruntime-web==1.30.0"], "provider": ["wasm"], "hardware": ["node:liar"]},
    "budget": "quick",
}
# what takes more than the tab's own requests: a code that waits for hours, an owner who revokes, a block given out anew
NOT_OF_A_TAB = {"an enrolment code that comes late", "a revoked secret", "a replayed report of an earlier attempt"}


def test_what_a_lying_tab_sends_is_refused_as_from_any_node(farm: LiveFarm, browser: Browser) -> None:
    context = browser.new_context(viewport=PHONE)
    page = opened(farm, context)
    page.evaluate(f"() => {{ {LIES} }}")
    codes = [accepted(farm.api("POST", "/nodes/invitations", json={}))["code"] for _ in range(2)]
    for node in page.evaluate("codes => window.steps.join({ codes })", codes):
        accepted(farm.api("POST", f"/nodes/{node.removeprefix('node:')}/approve"))
    page.evaluate("() => window.steps.hello()")
    farm.start_run(MODELS / "relu_op13_ir7.onnx", MATRIX)
    answers = page.evaluate("() => window.steps.lie()")
    context.close()
    told = {name: (status, code) for name, (status, code, _) in answers.items()}
    # who is turned away before a word is read gets no code: the status says it
    expected = {name: (status, noted[2] if noted else told[name][1]) for name, (_, status, noted) in BAD.items()}
    assert told == {name: expected[name] for name in BAD if name not in NOT_OF_A_TAB}
    assert [name for name, (_, _, text) in answers.items() if not text.endswith(".")] == []

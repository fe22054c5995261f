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
EXPIRE = """
from django.utils import timezone
from farm.fleet.models import EnrolmentCode
EnrolmentCode.objects.filter(used_at=None).update(expires_at=timezone.now())
"""


def test_what_a_lying_tab_sends_is_refused_as_from_any_node(farm: LiveFarm, browser: Browser) -> None:
    context = browser.new_context(viewport=PHONE)
    page = opened(farm, context)
    page.evaluate(f"() => {{ {LIES} }}")
    *codes, late = [accepted(farm.api("POST", "/nodes/invitations", json={}))["code"] for _ in range(3)]
    nodes = [node.removeprefix("node:") for node in page.evaluate("codes => window.steps.join({ codes })", codes)]
    for node in nodes:
        accepted(farm.api("POST", f"/nodes/{node}/approve"))
    # hours that pass, which no request brings about; every other code of this farm is used
    farm.manage("shell", "--command", EXPIRE)
    page.evaluate("() => window.steps.hello()")
    farm.start_run(MODELS / "relu_op13_ir7.onnx", MATRIX)
    answers = page.evaluate("lateCode => window.steps.lie({ lateCode })", late)
    accepted(farm.api("POST", f"/nodes/{nodes[1]}/revoke"))
    answers |= page.evaluate("() => window.steps.revoked()")
    context.close()
    told = {name: (status, code) for name, (status, code, _) in answers.items()}
    # who is turned away before a word is read gets no code: the status says it
    expected = {name: (status, noted[2] if noted else told[name][1]) for name, (_, status, noted) in BAD.items()}
    assert told == expected
    assert [name for name, (_, _, text) in answers.items() if not text.endswith(".")] == []

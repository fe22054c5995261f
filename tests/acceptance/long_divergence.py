"""A change between two releases, found and named on a whole farm. By hand, in a few minutes:

python -m pytest -q -s tests/acceptance/long_divergence.py
"""

import io
import json
import time
import zipfile
from pathlib import Path

import pytest

from farm.contract.divergence import DivergenceDocument
from farm.contract.document import Document
from farm.rules.presenting import parities
from tests.acceptance.conftest import LiveFarm, accepted

pytestmark = pytest.mark.timeout(600)
MODEL = Path(__file__).parents[1] / "models" / "qdq_bias.onnx"
MATRIX = {"matrix": {"runtime": ["1.20.1", "1.21.1"], "batch": [8], "threads": [1]}}


def test_a_change_of_one_quantum_is_found_and_its_node_is_named_by_the_node_that_measured(farm: LiveFarm) -> None:
    before = Document.model_validate(farm.submit(MODEL, MATRIX))
    change = parities.find_changed_outputs(before)[0]
    old, new, pair = change
    assert "The outputs changed between 1.20.1 and 1.21.1" in before.sentence
    print("\n", before.sentence)
    address = f"/runs/{before.run}/cells/{new.id}/divergences"
    asked = accepted(farm.api("POST", address, json={"against": old.id}))
    began = time.monotonic()
    while asked["is_open"]:
        assert time.monotonic() - began < 240, asked
        time.sleep(0.5)
        asked = farm.api("GET", f"/divergences/{asked['id']}").json()
    print(f" {asked['sentence']} ({time.monotonic() - began:.1f} s)")
    assert asked["state"] == "found", asked
    found = DivergenceDocument.model_validate(asked["answer"]).found
    assert found.part.shows_it
    assert "conv" in {found.node, *found.part.nodes}
    part = farm.api("GET", asked["part"].removeprefix("/api/v1"))
    with zipfile.ZipFile(io.BytesIO(part.content)) as archive:
        assert set(archive.namelist()) == {"divergence.json", "inputs.npz", MODEL.name, "reference.npz"}
        assert json.loads(archive.read("divergence.json")) == asked["answer"]
    after = Document.model_validate(farm.api("GET", f"/runs/{before.run}/results").json())
    assert after.cells == before.cells
    assert pair.verdict == "fail"

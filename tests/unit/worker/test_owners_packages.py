"""What a node's owner allows by name: by option, by variable, and never by anybody else."""

import re
from pathlib import Path

import pytest

from farm.contract.cells import Runtime
from farm.workshop.divergence import find_first_divergence
from worker.agent import main
from worker.agent.connection.gateway import Gateway
from worker.agent.equipment import NodeEquipment
from worker.agent.home import Identity, NodeHome
from worker.agent.installation.runtimes import RuntimeUnavailableError

FARM = "http://127.0.0.1:9"


@pytest.fixture
def home(tmp_path: Path) -> NodeHome:
    found = NodeHome(tmp_path / "node")
    found.store_identity(Identity(url=FARM, node_id="1", name="bench", private_key="x", fingerprint="y"))
    return found


@pytest.mark.parametrize("word", ["https://evil.example/a.whl", "my ort", "-r", "*"])
def test_a_node_does_not_start_with_an_allowance_that_is_no_name(
    word: str, home: NodeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=re.escape(word)):
        main.start(home.folder, search=find_first_divergence, allowed=[word])
    monkeypatch.setenv("ONNXFARM_NODE_ALLOWED_PACKAGES", f"my-ort,{word}")
    with pytest.raises(ValueError, match=re.escape(word)):
        main.start(home.folder, search=find_first_divergence)


def test_a_node_refuses_what_its_owner_did_not_allow_though_a_farm_did(home: NodeHome, monkeypatch: pytest.MonkeyPatch):
    # the farm's own variable says nothing on a node, also where both are one machine
    monkeypatch.setenv("ONNXFARM_ALLOWED_PACKAGES", "evil-package")
    with Gateway(FARM) as gateway:
        equipment = NodeEquipment(home, gateway, search=find_first_divergence, allowed=["my-ort"])
        with pytest.raises(RuntimeUnavailableError, match="Unknown distribution 'evil-package'"):
            equipment._runtimes.provide(Runtime(distribution="evil-package", version="1.31.1"))
    assert not (home.folder / "runtimes").exists()

"""A farm that was lost and restored by the commands of docs/operations.md: the same farm with the same node."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.acceptance.conftest import LiveFarm, live_farm
from tests.conftest import PROJECT
from tests.processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PAGE = (PROJECT / "docs/operations.md").read_text()
started = contextlib.contextmanager(live_farm)


def typed(section: str, *, number: int, folder: Path) -> None:
    """Runs the commands of one block of the page's section, but for those that start a farm."""
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    lines = re.findall(r"```\n(.*?)```", text, re.DOTALL)[number].splitlines()
    kept = [line for line in lines if not line.startswith("onnxfarm serve")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ONNXFARM_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    subprocess.run(["bash", "-euc", "\n".join(kept)], cwd=folder, check=True, env=environment)


def own_node(farm: LiveFarm) -> dict[str, Any]:
    """What the farm says of the node on its own machine; others may have joined it in other tests."""
    own = json.loads((farm.plan.home / "node/node.json").read_text())["node_id"]
    [node] = [one for one in farm.api("GET", "/nodes").json() if str(one["id"]) == own]
    return dict(node)


def who_it_is(farm: LiveFarm) -> dict[str, Any]:
    """The farm's own node: its number, its name, its key's fingerprint."""
    node = own_node(farm)
    return {name: node[name] for name in ("id", "name", "fingerprint", "health")}


def test_after_a_restore_the_same_node_is_the_same_node(farm: LiveFarm, tmp_path: Path) -> None:
    home = tmp_path / "var"
    home.symlink_to(farm.plan.home)
    before, owner = who_it_is(farm), farm.token
    typed("Backup and restore", number=0, folder=tmp_path)
    # to the restored farm it is lost; other tests go on with it
    lost = home.rename(tmp_path / "lost")
    typed("Backup and restore", number=1, folder=tmp_path)
    # a secret that was granted after the backup was taken: the restored farm has never heard of it
    shutil.copy(lost / "node/secret.json", home / "node/secret.json")
    with sqlite3.connect(home / "db.sqlite3") as database:
        database.execute("DELETE FROM fleet_nodesecret")
    database.close()
    with started(home) as restored:
        assert who_it_is(restored) == before | {"health": "active"}
        wait_for(lambda: own_node(restored)["state"] == "online", what="the node", seconds=60)
        assert restored.token != owner
        known = httpx2.get(f"{restored.url}/api/v1/me", headers={"Authorization": f"Bearer {owner}"}, timeout=60)
        assert known.status_code == 200

"""A pull request gated on a real farm by a token that may do nothing else: the action's steps, and GitLab's job."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import LiveFarm, accepted
from tests.acceptance.long_pull_request import BRANCHES, EXPECTED, MODEL, checkout, repository
from tests.integration.forges import job
from tests.integration.forges.server import TOKEN, Forge, forge

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
Gated = Callable[[Path, Forge, int], job.Job]


@pytest.fixture
def token(farm: LiveFarm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the environment of every job here, as a repository's secret is."""
    secret = str(accepted(farm.api("POST", "/tokens", json={"name": "ci", "scopes": ["gate"]}))["secret"])
    monkeypatch.setenv("ONNXFARM_TOKEN", secret)
    # nothing that whoever runs this has kept or sent before
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return secret


def test_branches_are_gated_on_a_farm_by_the_action_and_by_the_template(
    farm: LiveFarm, token: str, tmp_path: Path
) -> None:
    base = repository(tmp_path / "origin")
    with (tmp_path / "origin" / MODEL).open("rb") as file:
        first = accepted(farm.api("POST", "/uploads", files={"files": ("encoder.onnx", file)}))

    def on_github(clone: Path, known: Forge, number: int) -> job.Job:
        return job.github(
            clone,
            known,
            base=base,
            number=number,
            home=tmp_path / "home",
            model=MODEL,
            wheel="installed",
            server=farm.url,
        )

    def on_gitlab(clone: Path, known: Forge, number: int) -> job.Job:
        own = {"GATE_MODEL": MODEL, "GATE_SERVER": farm.url}
        return job.gitlab(clone, known, base=base, home=tmp_path / "home", **own)

    for kind, gated in (("github", on_github), ("gitlab", on_gitlab)):
        with forge() as known:
            _gate_each(kind, gated, known, farm, token, tmp_path)
    page = farm.api("GET", f"/models/{first['model_id']}").json()
    branches = {version["branch"]: version for version in page["versions"]}
    assert set(branches) == {"", *BRANCHES}
    assert (branches[""]["number"], branches[""]["id"]) == (1, first["id"])
    assert {version["commit"] for name, version in branches.items() if name} == {
        job.git(tmp_path / "origin", "rev-parse", name) for name in BRANCHES
    }


def _gate_each(kind: str, gated: Gated, known: Forge, farm: LiveFarm, token: str, folder: Path) -> None:
    for number, (branch, code) in enumerate(EXPECTED.items(), start=2):
        done = gated(checkout(folder, branch, kind=kind), known, number)
        assert done.code == code, (kind, branch, done.log[-4000:])
        body = known.comments[-1]["body"]
        assert f"]({farm.url}/runs/" in body
        assert "--server" not in body
        assert branch != "slower" or "slower" in body.splitlines()[1], body
        for text in (done.log, done.summary, body):
            assert token not in text
            assert TOKEN not in text
    assert known.wrong == []

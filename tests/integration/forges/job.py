"""The steps of deploy/github-action as a runner of GitHub Actions runs them, and the job of deploy/gitlab-ci.yml."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.integration.forges.server import TOKEN, Forge

ROOT = Path(__file__).resolve().parents[3]
ACTION = ROOT / "deploy/github-action/action.yml"
TEMPLATE = ROOT / "deploy/gitlab-ci.yml"
PULL_REQUEST = Path(__file__).with_name("pull_request.json")
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *AUTHOR, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def branch_of(folder: Path) -> str:
    return git(folder, "rev-parse", "--abbrev-ref", "HEAD")


@dataclass
class Job:
    """What a job left: its exit code, what it printed, outputs of its steps and of the action, and the summary."""

    code: int = 0
    log: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    answer: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    used: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)


def github(
    folder: Path,
    forge: Forge,
    *,
    base: str,
    number: int = 2,
    home: Path | None = None,
    place: Path | None = None,
    installs: bool = True,
    head: str = "",
    **inputs: str,
) -> Job:
    """The action in a pull request whose base is that commit, in a checkout at `folder`; `inputs`: of the workflow.

    `head`: the pull request's own newest commit, where the checkout is its merge. `place`: the runner's own folder,
    where it is the same for several jobs. Without `installs` it is cancelled where it would install.
    """
    action = yaml.safe_load(ACTION.read_text())
    place = place or folder.parent / f"runner-{folder.name}"
    place.mkdir(exist_ok=True)
    event = json.loads(PULL_REQUEST.read_text())
    event["number"] = event["pull_request"]["number"] = number
    event["pull_request"]["base"]["sha"] = base
    tip = git(folder, "rev-parse", head or "HEAD")
    event["pull_request"]["head"] |= {"sha": tip, "ref": branch_of(folder)}
    (place / "event.json").write_text(json.dumps(event))
    names = {name.replace("-", "_"): name for name in action["inputs"]}
    given = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
    given |= {names[name]: value for name, value in inputs.items()}
    job, summary = Job(), place / "summary.md"
    known = {
        "GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_ACTION_PATH": str(ACTION.parent), "RUNNER_TEMP": str(place),
        "GITHUB_EVENT_PATH": str(place / "event.json"), "GITHUB_REPOSITORY": event["repository"]["full_name"],
        "GITHUB_API_URL": forge.url, "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_SHA": git(folder, "rev-parse", "HEAD"),
    }  # fmt: skip
    summary.write_text("")
    for step in action["runs"]["steps"]:
        if "if" in step and not _is_true(step["if"], job):
            continue
        job.ran.append(step.get("id", ""))
        if step.get("id") == "install" and not installs:
            break
        if "uses" in step:
            job.used.append(step["uses"])
            continue
        output = place / "output"
        output.write_text("")
        own = {name: _filled(str(value), given, job) for name, value in step.get("env", {}).items()}
        script = place / "step.sh"
        script.write_text(_filled(step["run"], given, job))
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        _run(shell, job, folder, {**known, **own, "GITHUB_OUTPUT": str(output)}, home)
        job.outputs[step["id"]] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        if job.code:
            break
    job.summary = summary.read_text()
    job.answer = {name: _filled(each["value"], given, job) for name, each in action["outputs"].items()}
    return job


def gitlab(
    folder: Path,
    forge: Forge,
    *,
    base: str,
    home: Path | None = None,
    programs: Path = Path(sys.executable).parent,
    **variables: str,
) -> Job:
    """The template's job in a merge request, as a runner with the shell executor runs it; `programs`: its python3."""
    template = yaml.safe_load(TEMPLATE.read_text())[".onnxfarm-gate"]
    known = {
        "CI": "true", "GITLAB_CI": "true", "CI_PROJECT_DIR": str(folder), "CI_API_V4_URL": f"{forge.url}/api/v4",
        "CI_PROJECT_ID": "7", "CI_MERGE_REQUEST_IID": "3", "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": branch_of(folder), "CI_COMMIT_SHA": git(folder, "rev-parse", "HEAD"),
        "ONNXFARM_GITLAB_TOKEN": TOKEN,
    }  # fmt: skip
    job = Job()
    own = {name: str(value).replace("$CI_PROJECT_DIR", str(folder)) for name, value in template["variables"].items()}
    script = "\n".join([*template["before_script"], *template["script"]])
    known["PATH"] = f"{programs}:{os.environ['PATH']}"
    _run(["bash", "-eo", "pipefail", "-c", script], job, folder, {**known, **own, **variables}, home)
    return job


def _run(words: Sequence[str], job: Job, folder: Path, variables: Mapping[str, str], home: Path | None) -> None:
    # whatever this machine needs to reach its package index
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GATE_", "CI"))}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept |= {"PATH": path, "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT))}
    kept |= {"ONNXFARM_HOME": str(home)} if home else {}
    done = subprocess.run(
        words,
        cwd=folder,
        env={**kept, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    job.code, job.log = done.returncode, job.log + done.stdout


def _is_true(condition: str, job: Job) -> bool:
    """Of the one kind of condition that the action has: that a step has no such output."""
    found = re.fullmatch(r"steps\.(\w+)\.outputs\.(\w+) == ''", condition)
    assert found is not None, condition
    return not job.outputs.get(found[1], {}).get(found[2])


def _filled(text: str, inputs: Mapping[str, str], job: Job) -> str:
    """Expressions of the kinds that the action uses; any other is a mistake here."""

    def value(found: re.Match[str]) -> str:
        match found[1].split("."):
            case ["inputs", name]:
                return inputs[name].replace("${{ github.token }}", TOKEN)
            case ["steps", step, "outputs", name]:
                return job.outputs.get(step, {}).get(name, "")
        raise AssertionError(found[0])

    def first(found: re.Match[str]) -> str:
        return next(filter(None, (re.sub(r"([\w.-]+)", value, part) for part in found[1].split(" || "))), "")

    return re.sub(r"\$\{\{ *([\w.|\s-]+?) *\}\}", first, text)

"""A gate inside a pipeline: the action's own steps and the template's job; no name becomes a program."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from onnxfarm import ci, gate_process, git_models
from onnxfarm.forges import Answer, GitHub, RefusedError
from tests.acceptance.served import Served
from tests.integration.forges import job
from tests.integration.forges.server import TOKEN, Forge, forge
from tests.integration.worker.making import MODELS

RELU = MODELS / "relu_op13_ir7.onnx"
NAME = "models/encoder.onnx"


@pytest.fixture
def known() -> Iterator[Forge]:
    with forge() as server:
        yield server


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with a model, whose base is its first commit."""
    folder = tmp_path / "repository"
    (folder / "models").mkdir(parents=True)
    shutil.copy(RELU, folder / NAME)
    job.git(folder, "init", "-q")
    commit(folder, "base")
    return folder


def commit(folder: Path, text: str) -> str:
    job.git(folder, "add", "-A")
    job.git(folder, "commit", "-qm", text, "--allow-empty")
    return job.git(folder, "rev-parse", "HEAD")


def test_the_comment_is_made_once_and_then_updated(repository: Path, known: Forge) -> None:
    base = commit(repository, "second")
    no_model = job.github(repository, known, base=base, model=NAME, wheel="installed", against="git:HEAD:models/none")
    assert (no_model.code, no_model.answer) == (2, {"verdict": "not measured", "exit-code": "2"})
    same = job.github(repository, known, base=base, model=NAME, wheel="installed")
    assert (same.code, same.answer) == (0, {"verdict": "passed", "exit-code": "0"})
    assert known.wrong == []
    [comment] = known.comments
    assert "✅ Unchanged" in comment["body"]
    assert (len(known.of("PATCH")), [check["conclusion"] for check in known.checks]) == (
        1,
        ["action_required", "success"],
    )
    assert {check["head_sha"] for check in known.checks} == {base}
    assert f"::error file={NAME},line=1,title=onnxfarm gate::onnxfarm: git%3A" not in no_model.log
    assert f"::error file={NAME},line=1,title=onnxfarm gate::onnxfarm: git:HEAD:models/none" in no_model.log
    assert "models/none" in no_model.summary


def test_a_pull_request_that_leaves_the_model_as_it_is_gets_no_comment(repository: Path, known: Forge) -> None:
    done = job.github(repository, known, base=commit(repository, "x"), model=NAME, wheel="installed")
    assert (done.code, known.comments, len(known.checks)) == (0, [], 1)


@pytest.mark.parametrize(
    ("does", "inputs", "is_known"),
    [
        ("touch models/other.onnx models/README.md", {}, True),
        ("printf x >models/encoder.data", {}, False),
        ("printf x >>models/encoder.onnx", {}, False),
        ("mkdir kept && mv models/encoder.onnx kept/m && ln -s ../kept/m models/encoder.onnx", {}, False),
        ("git rm -q --cached models/encoder.onnx", {}, False),
        ("true", {"against": "git:HEAD"}, True),
        ("true", {"against": f"git:HEAD:{NAME}"}, False),
        ("true", {"against": NAME}, False),
        ("true", {"against": "git:--output=pwned"}, False),
        ("true", {"server": "https://farm.example"}, True),
        ("true", {"server": "https://farm.example", "runtimes": "1.29.0 1.31.1"}, False),
    ],
)
def test_a_model_that_is_the_bases_is_known_before_anything_is_installed(
    repository: Path, known: Forge, does: str, inputs: dict[str, str], is_known: bool
) -> None:
    base = commit(repository, "x")
    subprocess.run(["bash", "-ec", does], cwd=repository, check=True)
    done = job.github(repository, known, base=base, model=NAME, installs=False, **inputs)
    assert (done.answer.get("verdict"), "install" in done.ran) == (("passed", False) if is_known else ("", True))
    assert not list(repository.parent.rglob("pwned"))


@pytest.mark.parametrize(
    ("does", "verdict", "said"),
    [
        ("git mv models/encoder.onnx models/renamed.onnx && git commit -qm renamed", "passed", "byte for byte"),
        ("cp models/encoder.onnx models/renamed.onnx && git add -A && git commit -qm new", "passed", "New: models/"),
        ("git commit -qm none --allow-empty", "not measured", "models/renamed.onnx is not a file"),
    ],
)
def test_a_model_that_a_pull_request_adds_or_renames_is_no_fault(
    repository: Path, known: Forge, does: str, verdict: str, said: str
) -> None:
    base = commit(repository, "x")
    subprocess.run(
        ["bash", "-ec", f'git() {{ command git {" ".join(job.AUTHOR)} "$@"; }}; {does}'], cwd=repository, check=True
    )
    done = job.github(repository, known, base=base, model="models/renamed.onnx", wheel="installed")
    assert (done.answer["verdict"], said in done.log + done.summary) == (verdict, True), done.log
    assert str(repository) not in done.summary


def test_a_model_that_a_pull_request_removes_is_no_fault(repository: Path, known: Forge) -> None:
    base = commit(repository, "x")
    (repository / NAME).unlink()
    commit(repository, "removed")
    done = job.github(repository, known, base=base, model=NAME, installs=False)
    assert (done.answer["verdict"], "install" in done.ran) == ("passed", False), done.log
    assert "Removed: " in done.summary


def test_the_base_of_a_merge_is_its_first_parent_whatever_the_event_names(
    repository: Path, known: Forge, tmp_path: Path
) -> None:
    """`base.sha` is of the last push, and the merge that is checked out is newer."""
    lagging = commit(repository, "lagging")
    main = job.branch_of(repository)
    job.git(repository, "checkout", "-q", "-b", "feature")
    (repository / "README.md").write_text("x")
    head = commit(repository, "a pull request that leaves the model as it is")
    job.git(repository, "checkout", "-q", main)
    shutil.copy(MODELS / "cnn_dyn.onnx", repository / NAME)
    commit(repository, "main goes on")
    job.git(repository, "merge", "-q", "--no-ff", "-m", "merge", "feature")
    job.git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{repository}", str(clone)], check=True)
    done = job.github(clone, known, base=lagging, head=head, model=NAME, installs=False)
    assert done.answer["verdict"] == "passed", done.log


@pytest.mark.parametrize("ref", ["shipped", "origin/side", "side"])
def test_a_branch_or_tag_that_a_shallow_checkout_lacks_is_fetched(
    repository: Path, known: Forge, tmp_path: Path, ref: str
) -> None:
    job.git(repository, "tag", "shipped")
    job.git(repository, "branch", "side")
    commit(repository, "newest")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{repository}", str(clone)], check=True)
    done = job.github(clone, known, base="0" * 40, model=NAME, wheel="installed", against=f"git:{ref}:{NAME}")
    assert (done.code, "byte for byte" in done.log) == (0, True), done.log


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"options": "--frobnicate"}, "No such option"),
        ({"options": "'unclosed"}, "mend its quotes"),
        ({"options": "$(touch pwned) `touch pwned` ; touch pwned"}, "unexpected extra argument"),
        ({"options": "--max-slowdown '5 %' --rounds 4"}, "a verdict takes 8"),
        ({"tolerance": "$(touch${IFS}pwned)"}, "$(touch${IFS}pwned)"),
        ({"evaluation": "$(touch pwned).npz"}, "$(touch pwned).npz"),
    ],
)
def test_options_reach_the_gate_as_words_and_no_shell(
    repository: Path, known: Forge, inputs: dict[str, str], said: str
) -> None:
    base = commit(repository, "x")
    shutil.copy(MODELS / "cnn_dyn.onnx", repository / NAME)
    commit(repository, "another")
    done = job.github(repository, known, base=base, model=NAME, wheel="installed", **inputs)
    assert (done.code, said in done.log + done.summary) == (2, True), done.log
    assert not list(repository.parent.rglob("pwned*"))
    asked = {f"GATE_{name.upper()}": text for name, text in inputs.items()}
    known.comments.clear()
    assert job.gitlab(repository, known, base=base, GATE_MODEL=NAME, **asked).code == 2


def test_a_passed_gate_that_somebody_should_look_at_is_a_warning(
    repository: Path, known: Forge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = tmp_path / "event.json"
    event.write_text("{}")
    there = {"GITHUB_EVENT_PATH": str(event), "GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": known.url}
    for is_open, kind in ((False, "notice"), (True, "warning")):
        with contextlib.suppress(RefusedError):
            GitHub(there).publish_answer(Answer(0, "as fast; and more", "x", has_undecided=is_open), "m.onnx")
        assert capsys.readouterr().out.startswith(f"::{kind} ")


def test_a_comment_that_a_person_wrote_with_the_same_mark_is_left_alone(repository: Path, known: Forge) -> None:
    for _ in range(2):
        job.github(repository, known, base="0" * 40, model=NAME, wheel="installed")
        known.comments[0]["user"]["type"] = "User"
    assert len(known.comments) == 2


def test_the_comment_is_found_behind_thousands_of_others(repository: Path, known: Forge) -> None:
    job.github(repository, known, base="0" * 40, model=NAME, wheel="installed")
    known.comments[:0] = [{**known.comments[0], "id": 1000 + number, "body": "+1"} for number in range(3100)]
    job.github(repository, known, base="0" * 40, model=NAME, wheel="installed")
    assert (len(known.comments), len(known.of("PATCH")), known.wrong) == (3101, 1, [])


def test_a_fork_without_the_right_to_write_gets_the_summary_alone(repository: Path, known: Forge) -> None:
    known.may_write = False
    done = job.github(repository, known, base="0" * 40, model=NAME, wheel="installed")
    assert (done.code, known.comments, known.checks) == (2, [], [])
    assert done.summary.startswith("### ❌ ")
    assert ci.READ_ONLY in done.log


def test_what_the_forge_does_not_answer_leaves_the_gates_own_code(repository: Path, known: Forge) -> None:
    gone = Forge(url="http://127.0.0.1:9")
    assert job.github(repository, gone, base=commit(repository, "x"), model=NAME, wheel="installed").code == 0


def test_a_token_reaches_no_log_comment_summary_or_program_and_no_other_address(repository: Path, known: Forge) -> None:
    done = job.github(repository, known, base="0" * 40, model=NAME, wheel="installed")
    with forge() as other:
        known.redirects_to = other.url
        moved = job.github(repository, known, base="0" * 40, model=NAME, wheel="installed")
        assert (other.calls, moved.code) == ([], 2)
    written = [done.log, moved.log, done.summary, *(comment["body"] for comment in known.comments), str(known.checks)]
    written += [path.read_text(errors="replace") for path in repository.parent.rglob("*") if path.is_file()]
    assert known.authorizations == {f"Bearer {TOKEN}"}
    assert not [text for text in written if TOKEN in text]
    tokens = {"GATE_TOKEN": TOKEN, "CI_JOB_TOKEN": TOKEN, "ONNXFARM_GITLAB_TOKEN": TOKEN}
    assert ci.remove_tokens({**tokens, "ONNXFARM_TOKEN": "farm", "PATH": "/bin"}) == {
        "ONNXFARM_TOKEN": "farm",
        "PATH": "/bin",
    }


@pytest.mark.parametrize(
    ("does", "code", "verdict", "said"),
    [
        ("1 / 0", 70, "not measured", "ZeroDivisionError: division by zero"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "not measured", ""),
        ("os.kill(os.getpid(), signal.SIGTERM)", 143, "cancelled", ""),
        # as a runner ends the job's own process, and another one that it waits for with it
        ("os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)", 143, "cancelled", ""),
        ("os.kill(os.getppid(), signal.SIGINT); time.sleep(60)", 130, "cancelled", ""),
    ],
)
def test_a_gate_that_crashes_or_is_cancelled_says_nothing_of_the_model(
    repository: Path, known: Forge, monkeypatch: pytest.MonkeyPatch, does: str, code: int, verdict: str, said: str
) -> None:
    broken = repository.parent / "broken"
    broken.mkdir()
    # of the standard library, by which the gate compares two files
    (broken / "filecmp.py").write_text(f"import os, signal, time\ndef cmp(*sides, shallow):\n    {does}\n")
    monkeypatch.setenv("PYTHONPATH", f"{broken}:{job.ROOT}")
    # of a commit's other path nothing is known before it is read
    against = f"git:{commit(repository, 'x')}:{NAME}"
    done = job.github(repository, known, base="0" * 40, model=NAME, wheel="installed", against=against)
    assert (done.code, done.answer) == (code, {"verdict": verdict, "exit-code": str(code)}), done.log
    assert done.summary.startswith(f"### ❌ {gate_process.explain_end(code, said)}")
    is_cancelled = verdict == "cancelled"
    assert [check["conclusion"] for check in known.checks] == ["cancelled" if is_cancelled else "action_required"]
    assert [comment["body"].partition("\n")[2] for comment in known.comments] == [done.summary] * (not is_cancelled)
    assert (known.wrong, "::error" in done.log) == ([], not is_cancelled)


HOSTILE = (
    "$(touch pwned).onnx", "`touch pwned`.onnx", '"; touch pwned; ".onnx', "--json=pwned.onnx",
    "a\n::error::evil\nb.onnx",
    "<b>x</b>.onnx", "x --> y.onnx", "a %0A::set-output name=x::y,file=z.onnx", "@all\n/close.onnx",
)  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_path_or_branch_is_text_everywhere(repository: Path, known: Forge, hostile: str) -> None:
    job.git(repository, "checkout", "-q", "-b", "$(touch${IFS}pwned)`touch${IFS}pwned`")
    done = job.github(repository, known, base="0" * 40, model=hostile, wheel="installed", against=f"git:{hostile}")
    assert done.code == 2, done.log
    assert not list(repository.parent.rglob("pwned*"))
    assert known.wrong == []
    lines = done.log.splitlines()
    [opened] = [number for number, line in enumerate(lines) if line.startswith("::stop-commands::")]
    closed = lines.index(f"::{lines[opened].rpartition('::')[2]}::")
    outside = [line for line in lines[:opened] + lines[closed + 1 :] if line.lstrip().startswith("::") or "##[" in line]
    assert [line.partition(" ")[0] for line in outside] == ["::error"]
    [body] = [comment["body"] for comment in known.comments]
    assert body.count("-->") == body.count("<!--") == 1
    assert "<b>" not in body.replace("\\<b", "")
    assert len(body.strip().splitlines()) == 2


FARMS_TOKEN = "ofk_Tq1mZ8cV3nB6xL0wR5yK2jH7"


@contextlib.contextmanager
def hostile_farm() -> Iterator[str]:
    """The address of a farm that answers whatever it is asked by the token, and by what commands pipelines."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            secret = self.headers.get("Authorization", "").removeprefix("Bearer ")
            words = f"<b>no</b> {secret} @all [x](http://evil)\n::error::evil\n/close"
            content = json.dumps({"detail": words}).encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_HEAD = _answer  # noqa: N815  as http.server looks for them

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with Served(server):
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_what_a_farm_says_is_text_and_its_token_stands_nowhere(
    repository: Path, known: Forge, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    base = commit(repository, "base")
    shutil.copy(MODELS / "cnn_dyn.onnx", repository / NAME)
    commit(repository, "<img src=x> @all ::error::x")
    with hostile_farm() as url:
        if kind == "github":
            own = {"server": url, "server_token": FARMS_TOKEN}
            done = job.github(repository, known, base=base, model=NAME, wheel="installed", **own)
        else:
            monkeypatch.setenv("ONNXFARM_TOKEN", FARMS_TOKEN)
            done = job.gitlab(repository, known, base=base, GATE_MODEL=NAME, GATE_SERVER=url)
    assert (done.code, known.wrong) == (2, []), done.log
    [body] = [comment["body"] for comment in known.comments]
    written = [done.log, done.summary, body, str(known.checks)]
    written += [path.read_text(errors="replace") for path in repository.parent.rglob("*") if path.is_file()]
    assert not [text for text in written if FARMS_TOKEN in text or TOKEN in text]
    assert "***" in done.log
    assert "<b>" not in body.replace("\\<b", "")
    assert "@all" not in body.replace("@\N{ZERO WIDTH SPACE}all", "").replace("\\@all", "")
    assert len(body.strip().splitlines()) == 2
    assert not [line for line in done.log.splitlines() if line.startswith("::error::evil")]
    assert "::error::evil" in done.log


def test_a_password_in_the_address_of_a_farm_stands_nowhere(
    repository: Path, known: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONNXFARM_TOKEN", FARMS_TOKEN)
    base = commit(repository, "base")
    shutil.copy(MODELS / "cnn_dyn.onnx", repository / NAME)
    address = "https://somebody:hunter2@farm.example"
    done = job.github(repository, known, base=base, model=NAME, wheel="installed", server=address)
    assert done.code == 2
    assert not [text for text in (done.log, done.summary, *(c["body"] for c in known.comments)) if "hunter2" in text]


def test_the_template_of_gitlab_writes_one_note_and_junit(repository: Path, known: Forge) -> None:
    base = commit(repository, "second")
    none = job.gitlab(repository, known, base=base, GATE_MODEL=NAME, GATE_AGAINST="git:HEAD:models/none")
    same = job.gitlab(repository, known, base=base, GATE_MODEL=NAME)
    assert (none.code, same.code, known.wrong) == (2, 0, [])
    assert [method for method, _ in known.calls if method != "GET"] == ["POST", "PUT"]
    assert "✅ Unchanged" in known.comments[0]["body"]
    assert TOKEN not in none.log + same.log


def test_without_a_token_the_template_of_gitlab_leaves_the_log(repository: Path, known: Forge) -> None:
    done = job.gitlab(repository, known, base="0" * 40, GATE_MODEL=NAME, ONNXFARM_GITLAB_TOKEN="")
    assert (done.code, known.calls, "ONNXFARM_GITLAB_TOKEN is not set" in done.log) == (2, [], True)


def test_what_a_shallow_checkout_lacks_is_fetched_from_its_origin_and_from_lfs(
    repository: Path, known: Forge, tmp_path: Path
) -> None:
    job.git(repository, "lfs", "install", "--local")
    job.git(repository, "lfs", "track", "*.onnx")
    shutil.copy(MODELS / "cnn_dyn.onnx", repository / NAME)
    base = commit(repository, "in LFS")
    shutil.copy(RELU, repository / NAME)
    commit(repository, "another")
    shutil.copy(MODELS / "cnn_dyn.onnx", repository / NAME)
    commit(repository, "back")
    clone = tmp_path / "clone"
    skip = {**os.environ, "GIT_LFS_SKIP_SMUDGE": "1"}
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{repository}", str(clone)], env=skip, check=True)
    job.git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    same = job.github(clone, known, base=base, model=NAME, installs=False)
    assert (same.answer["verdict"], git_models.is_lfs_pointer(clone / NAME)) == ("passed", True), same.log
    done = job.github(clone, known, base=base, model=NAME, wheel="installed", against=f"git:{base}:{NAME}")
    assert (done.code, "byte for byte" in done.log) == (0, True), done.log
    assert (clone / NAME).read_bytes() == (MODELS / "cnn_dyn.onnx").read_bytes()

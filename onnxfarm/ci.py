"""A gate inside a pipeline: `python -m onnxfarm.ci github` or `gitlab`, with nothing but the wheel.

Around `onnxfarm gate`: the commit to compare with is fetched, and the answer becomes a step's outputs, annotations, a
check, and one comment that later answers replace. With `--unchanged` it ends with 0 where there is nothing to measure,
once it has said so, and needs the standard library alone. What a pipeline, a branch or a model is called comes through
variables and is never a program.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from farm.rules.presenting.markdown import as_text
from onnxfarm import gate_process
from onnxfarm.forges import Answer, Forge, GitHub, GitLab, RefusedError
from onnxfarm.gate_process import CANCELLED, FAILED, PASSED

UNCHANGED = "--unchanged"
# before a commit in what is compared with
GIT = "git:"
SHA = re.compile("[0-9a-f]{40,64}")
# the exit code of a gate that was given what it cannot use
UNUSABLE = 2
# what holds no weights of a model beside it
NO_WEIGHTS = (".onnx", ".npz", ".zip", ".md")
# GitHub ends a cancelled job's processes 10 s after it asked them to end
ENDING_S = 4
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)
MAX_BRANCH = 255
# a shorter text is no secret, and may stand in a word
MIN_TOKEN = 8
READ_ONLY = "This token may not write here, as in a pull request from a fork: the job's summary has the answer."


class CancelledError(BaseException):
    """A signal asks the job to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


def main(kind: str, environment: Mapping[str, str], *words: str) -> int:
    """Run the gate of a pipeline and publish its answer; return the gate's exit code, published or not.

    `kind` is "github" or "gitlab", and `environment` what the pipeline sets. With UNCHANGED in `words` nothing is
    measured: it returns PASSED, once it has published why there is nothing to measure, or else FAILED.
    """
    forge: Forge = GitHub(environment) if kind == "github" else GitLab(environment)
    model = environment["GATE_MODEL"]
    if UNCHANGED in words:
        why = _explain_unmeasured(model, _commit(forge, environment))
        if not why:
            return FAILED
        answer = _make_broken_answer(PASSED, why, environment)
        _publish_answer(forge, answer, environment)
        return answer.code
    try:
        with _cancel_by_signals():
            answer = _answer(model, forge, environment)
    except CancelledError as cancelled:
        answer = _make_broken_answer(cancelled.code, "", environment)
    _publish_answer(forge, answer, environment)
    return answer.code


def _publish_answer(forge: Forge, answer: Answer, environment: Mapping[str, str]) -> None:
    model = environment["GATE_MODEL"]
    with _print_refusals():
        # of a push that came after this one, another job will write the comment
        if forge.mute:
            print(forge.mute, flush=True)
        elif answer.code not in CANCELLED:
            _comment(forge, _mark(model, environment), answer)
    with _print_refusals():
        forge.publish_answer(answer, model)


@contextlib.contextmanager
def _cancel_by_signals() -> Iterator[None]:
    """The first signal raises CancelledError; those that follow it, as a runner loses patience, are passed over."""

    def cancel(number: int, frame: object) -> None:
        for each in ENDING_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise CancelledError(number)

    before = {number: signal.signal(number, cancel) for number in ENDING_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@contextlib.contextmanager
def _print_refusals() -> Iterator[None]:
    try:
        yield
    except RefusedError as refused:
        print(READ_ONLY if refused.status in (401, 403, 404) else f"{refused}.", flush=True)


def _answer(model: str, forge: Forge, environment: Mapping[str, str]) -> Answer:
    try:
        words = _words(model, forge, environment)
    except ValueError as problem:
        return _make_broken_answer(
            UNUSABLE, f"options cannot be read ({str(problem).rstrip('.')}): mend its quotes.", environment
        )
    with tempfile.TemporaryDirectory(prefix="onnxfarm-ci-") as folder:
        comment = Path(folder) / "comment.md"
        before, after = forge.make_fences()
        command = [sys.executable, "-m", "onnxfarm.main", "gate", *words, f"--comment={comment}"]
        line = ""
        print(before, flush=True)
        # one stream, so that every line of the program stands between the two around it
        with subprocess.Popen(
            command,
            env=remove_tokens(environment),
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as child:
            try:
                for printed in child.stdout or ():
                    told = redact_tokens(printed, environment)
                    print(told.rstrip("\n"), flush=True)
                    line = told.strip() or line
            except CancelledError:
                _end(child)
                raise
            finally:
                print(after, flush=True)
        text = redact_tokens(comment.read_text(), environment) if comment.exists() else ""
    code = gate_process.compute_exit_code(child.returncode, is_judged=bool(text))
    if text and code not in CANCELLED and not gate_process.is_broken(code):
        from farm.rules.changes.gate_comment import SEPARATOR

        line = text.splitlines()[0].removeprefix("### ").replace("`", "")
        return Answer(code, line, text, is_open=SEPARATOR in line)
    return _make_broken_answer(code, line, environment)


def _end(child: "subprocess.Popen[str]") -> None:
    """End the gate within ENDING_S, less time than a runner leaves."""
    child.terminate()
    try:
        child.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        child.kill()


def _make_broken_answer(code: int, line: str, environment: Mapping[str, str]) -> Answer:
    """Make the answer of a gate that wrote no comment; `line`, the last that it printed, says why."""
    line = gate_process.explain_end(code, line)
    text = f"### {'✅' if code == PASSED else '❌'} {as_text(line)}\n"
    if summary := environment.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a") as file:
            file.write(text)
    return Answer(code, line, text, is_news=code != PASSED)


def _words(model: str, forge: Forge, environment: Mapping[str, str]) -> list[str]:
    """Return the options of the gate: against another model, or two runtimes on a farm where those alone are named.
    Raises ValueError where those that were given freely end within quotes."""
    runtimes = environment.get("GATE_RUNTIMES", "").split()
    words = [f"./{model}" if model.startswith("-") else model]
    words += [f"--fail-on={environment.get('GATE_FAIL_ON') or 'slower,lower,parity,placement,failed'}"]
    words += [f"--budget={environment['GATE_BUDGET']}"] if environment.get("GATE_BUDGET") else []
    words += [f"--junit={environment['GATE_JUNIT']}"] if environment.get("GATE_JUNIT") else []
    words += [f"--tolerance={each}" for each in environment.get("GATE_TOLERANCE", "").split()]
    words += [f"--evaluation={environment['GATE_EVALUATION']}"] if environment.get("GATE_EVALUATION") else []
    words += shlex.split(environment.get("GATE_OPTIONS", ""))
    server, against = environment.get("GATE_SERVER"), environment.get("GATE_AGAINST", "")
    if server:
        # what a farm cannot take as a name is told all the same
        branch = "".join(filter(str.isprintable, forge.branch))[:MAX_BRANCH]
        words += [f"--server={server}", f"--branch={branch}", f"--commit={forge.head}"]
    else:
        words.append("--ci")
    if server and not against and len(runtimes) > 1:
        sides = zip(("baseline", "candidate"), runtimes, strict=False)
        return [*words, *(f"--{side}={runtime}" for side, runtime in sides)]
    against = against or _locate_base(model, _base(forge))
    _prepare(model, against)
    return [*words, f"--against={against}", *(["--ort", ",".join(runtimes)] if runtimes else [])]


def _prepare(model: str, against: str) -> None:
    """Bring here what a shallow checkout lacks: the commit to compare with, and what Git LFS keeps elsewhere.

    What fails is said by the gate, which then finds no such commit or no model.
    """
    from onnxfarm import git_models

    if against.startswith(GIT):
        _fetch(against.removeprefix(GIT).partition(":")[0])
    _git("lfs", "install", "--local")
    path = Path(model)
    with contextlib.suppress(OSError):
        if git_models.is_lfs_pointer(path):
            # its external data too
            _git("lfs", "pull", f"--include={'' if path.parent == Path() else f'{path.parent.as_posix()}/'}*")


def _commit(forge: Forge, environment: Mapping[str, str]) -> str:
    """Return the commit whose model of the same path is compared with; empty where something else is compared."""
    against = environment.get("GATE_AGAINST") or f"{GIT}{_base(forge)}"
    is_of_runtimes = environment.get("GATE_SERVER") and len(environment.get("GATE_RUNTIMES", "").split()) > 1
    if is_of_runtimes and not environment.get("GATE_AGAINST"):
        return ""
    commit = against.removeprefix(GIT)
    return "" if against == commit or ":" in commit else commit


def _base(forge: Forge) -> str:
    """Return the commit that the pull request would be merged into. What an event names is as old as its last push; the
    merge that a forge checks out has the newer one, and says so in a shallow checkout too."""
    header = _ask_git("cat-file", "commit", "HEAD").partition("\n\n")[0].splitlines()
    parents = [line.removeprefix("parent ") for line in header if line.startswith("parent ")]
    return parents[0] if forge.tip and parents[1:] == [forge.tip] else forge.base


def _locate_base(model: str, commit: str) -> str:
    """Return the model as the commit has it, under the name that it had there."""
    if not commit:
        return ""
    renamed = "" if _fetch(commit) or _has(commit, model) else _name_before(model, commit)
    return f"{GIT}{commit}:{renamed}" if renamed else f"{GIT}{commit}"


def _name_before(model: str, commit: str) -> str:
    """Return what a model that was renamed since the commit was called there, by git's own similarity; empty
    otherwise."""
    listed = _ask_git(
        "diff", "--no-ext-diff", "--find-renames", "--diff-filter=R", "--name-status", "-z", commit, "HEAD"
    )
    fields = listed.split("\0")
    known = {new: old for old, new in zip(fields[1::3], fields[2::3], strict=False)}
    return known.get(_ask_git("ls-files", "--full-name", "-z", "--", f":(literal){model}").rstrip("\0"), "")


def _has(commit: str, model: str) -> bool:
    return _git("cat-file", "-e", f"{commit}:./{model}") == 0


def _explain_unmeasured(model: str, commit: str) -> str:
    """Say why there is nothing to measure; empty where there is, or nobody can tell."""
    if not commit or _fetch(commit):
        return ""
    is_here, is_there = _has("HEAD", model), _has(commit, model)
    if is_here and not is_there and not _name_before(model, commit):
        return f"New: {model} is not in its base, and nothing was compared."
    if is_there and not is_here and not Path(model).exists():
        return f"Removed: {model} is in its base alone, and nothing was measured."
    is_same = is_here and is_there and _is_unchanged(model, commit)
    return f"Unchanged: {model} is its base, byte for byte, and nothing was measured." if is_same else ""


def _is_unchanged(model: str, commit: str) -> bool:
    """Say whether the checkout has the model as the commit has it, and what lies beside it that may hold its
    weights."""
    path = Path(model)
    folder = path if path.is_dir() else path.parent
    if _git("--literal-pathspecs", "ls-files", "--error-unmatch", "--", model):
        return False
    # what a link leads to may have changed elsewhere
    if path.absolute() != path.resolve() or any(entry.is_symlink() for entry in folder.iterdir()):
        return False
    listed, differing = b"", ["diff", "--no-ext-diff", "--name-only", "--relative", "-z", "--end-of-options", commit]
    for words in (differing, ["ls-files", "--others", "-z"]):
        asked = ["git", "--literal-pathspecs", *words, "--", str(folder)]
        done = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if done.returncode:
            return False
        listed += done.stdout
    changed = [Path(os.fsdecode(name)) for name in listed.split(b"\0") if name]
    beside = [name for name in changed if name.parent == path.parent and name.suffix.lower() not in NO_WEIGHTS]
    return not beside and not any(name == path or path in name.parents for name in changed)


def _fetch(commit: str) -> int:
    """Have a commit, or a branch or tag by its name, here, where a shallow checkout knows nothing of it."""
    if _git("cat-file", "-e", f"{commit}^{{commit}}") == 0:
        return 0
    kept = "" if SHA.fullmatch(commit) else f":refs/remotes/{commit}"
    named = commit.removeprefix("origin/") if kept else commit
    return _git("fetch", "--quiet", "--no-tags", "--depth=1", "origin", "--", f"{named}{kept}")


def _ask_git(*words: str) -> str:
    done = subprocess.run(["git", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return "" if done.returncode else os.fsdecode(done.stdout)


def _git(*words: str) -> int:
    return subprocess.run(["git", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode


def remove_tokens(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for the gate's process, without any token but that of the farm that measures."""
    kept = {name: value for name, value in environment.items() if "TOKEN" not in name or name == "ONNXFARM_TOKEN"}
    farms = environment.get("GATE_SERVER_TOKEN")
    return {**kept, "ONNXFARM_TOKEN": farms} if farms else kept


def redact_tokens(text: str, environment: Mapping[str, str]) -> str:
    """Replace every token of the environment in a text by ***, as a farm's answer may hold anything."""
    tokens = {value for name, value in environment.items() if "TOKEN" in name and len(value) >= MIN_TOKEN}
    for token in tokens:
        text = text.replace(token, "***")
    return text


def _comment(forge: Forge, mark: str, answer: Answer) -> None:
    """Keep one comment a gate: the first answer writes it, later ones replace its text."""
    path = next((path for path, body in forge.list_comments() if body.startswith(mark)), "")
    if path or answer.is_news:
        forge.write_comment(f"{mark}\n{answer.comment}", path)


def _mark(model: str, environment: Mapping[str, str]) -> str:
    """Return what the gate's own comment begins with: nothing of a name, as that could end a comment of HTML."""
    asked = [model, *(environment.get(f"GATE_{name}", "") for name in ("RUNTIMES", "SERVER"))]
    # two gates of one model differ by what else was given
    asked += filter(None, [environment.get("GATE_OPTIONS")])
    return f"<!-- onnxfarm gate {hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]} -->"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.environ, *sys.argv[2:]))

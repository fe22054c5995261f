"""Runs `onnxfarm gate` in a pipeline and publishes its answer: `python -m onnxfarm.ci github` or `gitlab`.

It fetches the commit to compare with, and publishes the answer as outputs of the step, annotations, a check, and one
comment that later answers replace. With `--unchanged` it measures nothing: it ends with 0 if there is nothing to
measure, which it publishes, and imports only the standard library. Names of pipelines, branches and models come through
variables, never through a shell.
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
# the prefix of a commit in GATE_AGAINST
GIT = "git:"
SHA = re.compile("[0-9a-f]{40,64}")
# the exit code of `onnxfarm gate` for options that cannot be used
UNUSABLE = 2
# endings of files that hold no weights of a model beside them
NO_WEIGHTS = (".onnx", ".npz", ".zip", ".md")
# the gate's process has this long to end; GitHub kills the processes of a cancelled job after 10 s
ENDING_S = 4
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)
MAX_BRANCH = 255
# a shorter text is no token, and might be part of a word
MIN_TOKEN = 8
READ_ONLY = "This token may not write here, as in a pull request from a fork: the job's summary has the answer."


class CancelledError(BaseException):
    """A signal asks the job to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


def main(kind: str, environment: Mapping[str, str], *words: str) -> int:
    """Run the gate and publish its answer. Return the gate's exit code, also where publishing was refused.

    `kind` is "github" or "gitlab", and `environment` the variables of the job. With UNCHANGED in `words` nothing is
    measured: it publishes why there is nothing to measure and returns PASSED, or returns FAILED if there is something.
    """
    forge: Forge = GitHub(environment) if kind == "github" else GitLab(environment)
    model = environment["GATE_MODEL"]
    if UNCHANGED in words:
        reason = _explain_unmeasured(model, _find_base_commit(forge, environment))
        if not reason:
            return FAILED
        answer = _make_broken_answer(PASSED, reason, environment)
        _publish_answer(forge, answer, environment)
        return answer.code
    try:
        with _cancel_by_signals():
            answer = _run_gate(model, forge, environment)
    except CancelledError as cancelled:
        answer = _make_broken_answer(cancelled.code, "", environment)
    _publish_answer(forge, answer, environment)
    return answer.code


def _publish_answer(forge: Forge, answer: Answer, environment: Mapping[str, str]) -> None:
    model = environment["GATE_MODEL"]
    with _print_refusals():
        # a cancelled job leaves the comment to the job of the later push
        if forge.mute:
            print(forge.mute, flush=True)
        elif answer.code not in CANCELLED:
            _write_comment(forge, _make_mark(model, environment), answer)
    with _print_refusals():
        forge.publish_answer(answer, model)


@contextlib.contextmanager
def _cancel_by_signals() -> Iterator[None]:
    """Turn the first of ENDING_SIGNALS into a CancelledError; later ones are ignored."""

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


def _run_gate(model: str, forge: Forge, environment: Mapping[str, str]) -> Answer:
    try:
        words = _make_gate_options(model, forge, environment)
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
                    redacted = redact_tokens(printed, environment)
                    print(redacted.rstrip("\n"), flush=True)
                    line = redacted.strip() or line
            except CancelledError:
                _end_gate(child)
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


def _end_gate(child: "subprocess.Popen[str]") -> None:
    """Terminate the gate's process, and kill it after ENDING_S."""
    child.terminate()
    try:
        child.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        child.kill()


def _make_broken_answer(code: int, line: str, environment: Mapping[str, str]) -> Answer:
    """Make the answer of a gate that wrote no comment, and add it to the step summary of GitHub.

    `line` is the last line that the gate printed, which says why.
    """
    line = gate_process.explain_end(code, line)
    text = f"### {'✅' if code == PASSED else '❌'} {as_text(line)}\n"
    if summary := environment.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a") as file:
            file.write(text)
    return Answer(code, line, text, is_news=code != PASSED)


def _make_gate_options(model: str, forge: Forge, environment: Mapping[str, str]) -> list[str]:
    """Make the gate's model and options from the job's variables, and fetch the model to compare with.

    Two runtimes are compared where a farm and several runtimes are named and no other model is, and two models
    otherwise. Raises ValueError where GATE_OPTIONS ends within quotes.
    """
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
        # a farm refuses names with other characters, or longer ones
        branch = "".join(filter(str.isprintable, forge.branch))[:MAX_BRANCH]
        words += [f"--server={server}", f"--branch={branch}", f"--commit={forge.head}"]
    else:
        words.append("--ci")
    if server and not against and len(runtimes) > 1:
        sides = zip(("baseline", "candidate"), runtimes, strict=False)
        return [*words, *(f"--{side}={runtime}" for side, runtime in sides)]
    against = against or _locate_base(model, _find_merge_base(forge))
    _fetch_missing_files(model, against)
    return [*words, f"--against={against}", *(["--ort", ",".join(runtimes)] if runtimes else [])]


def _fetch_missing_files(model: str, against: str) -> None:
    """Fetch what a shallow checkout lacks: the commit to compare with, and files of Git LFS.

    Where that fails, the gate says so, because it finds no such commit or no model.
    """
    from onnxfarm import git_models

    if against.startswith(GIT):
        _fetch(against.removeprefix(GIT).partition(":")[0])
    _git("lfs", "install", "--local")
    path = Path(model)
    with contextlib.suppress(OSError):
        if git_models.is_lfs_pointer(path):
            # with the model's external data
            _git("lfs", "pull", f"--include={'' if path.parent == Path() else f'{path.parent.as_posix()}/'}*")


def _find_base_commit(forge: Forge, environment: Mapping[str, str]) -> str:
    """Return the commit whose model at the same path is the base; empty where there is another base, or none."""
    against = environment.get("GATE_AGAINST") or f"{GIT}{_find_merge_base(forge)}"
    is_of_runtimes = environment.get("GATE_SERVER") and len(environment.get("GATE_RUNTIMES", "").split()) > 1
    if is_of_runtimes and not environment.get("GATE_AGAINST"):
        return ""
    commit = against.removeprefix(GIT)
    return "" if against == commit or ":" in commit else commit


def _find_merge_base(forge: Forge) -> str:
    """Return the commit that the pull request would be merged into.

    That is the first parent of the merge that the forge checked out. The commit that the event names may be older.
    """
    header = _ask_git("cat-file", "commit", "HEAD").partition("\n\n")[0].splitlines()
    parents = [line.removeprefix("parent ") for line in header if line.startswith("parent ")]
    return parents[0] if forge.tip and parents[1:] == [forge.tip] else forge.base


def _locate_base(model: str, commit: str) -> str:
    """Return `git:COMMIT`, with the model's path there if it was renamed since; empty without a commit."""
    if not commit:
        return ""
    renamed = "" if _fetch(commit) or _has_model(commit, model) else _find_earlier_name(model, commit)
    return f"{GIT}{commit}:{renamed}" if renamed else f"{GIT}{commit}"


def _find_earlier_name(model: str, commit: str) -> str:
    """Return the path that a model had in the commit, by git's rename detection; empty if it was not renamed."""
    listed = _ask_git(
        "diff", "--no-ext-diff", "--find-renames", "--diff-filter=R", "--name-status", "-z", commit, "HEAD"
    )
    fields = listed.split("\0")
    earlier_names = {new: old for old, new in zip(fields[1::3], fields[2::3], strict=False)}
    return earlier_names.get(_ask_git("ls-files", "--full-name", "-z", "--", f":(literal){model}").rstrip("\0"), "")


def _has_model(commit: str, model: str) -> bool:
    return _git("cat-file", "-e", f"{commit}:./{model}") == 0


def _explain_unmeasured(model: str, commit: str) -> str:
    """Say why there is nothing to measure; empty where there is something, or where git cannot tell."""
    if not commit or _fetch(commit):
        return ""
    is_here, is_there = _has_model("HEAD", model), _has_model(commit, model)
    if is_here and not is_there and not _find_earlier_name(model, commit):
        return f"New: {model} is not in its base, and nothing was compared."
    if is_there and not is_here and not Path(model).exists():
        return f"Removed: {model} is in its base alone, and nothing was measured."
    is_same = is_here and is_there and _is_unchanged(model, commit)
    return f"Unchanged: {model} is its base, byte for byte, and nothing was measured." if is_same else ""


def _is_unchanged(model: str, commit: str) -> bool:
    """Say whether the model, and the files beside it that may hold its weights, are as in the commit."""
    path = Path(model)
    folder = path if path.is_dir() else path.parent
    if _git("--literal-pathspecs", "ls-files", "--error-unmatch", "--", model):
        return False
    # the target of a link may have changed elsewhere
    if path.absolute() != path.resolve() or any(entry.is_symlink() for entry in folder.iterdir()):
        return False
    listed, differing = b"", ["diff", "--no-ext-diff", "--name-only", "--relative", "-z", "--end-of-options", commit]
    for words in (differing, ["ls-files", "--others", "-z"]):
        command = ["git", "--literal-pathspecs", *words, "--", str(folder)]
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if process.returncode:
            return False
        listed += process.stdout
    changed = [Path(os.fsdecode(name)) for name in listed.split(b"\0") if name]
    beside = [name for name in changed if name.parent == path.parent and name.suffix.lower() not in NO_WEIGHTS]
    return not beside and not any(name == path or path in name.parents for name in changed)


def _fetch(commit: str) -> int:
    """Fetch a commit, branch or tag that a shallow checkout lacks. Return git's exit code, 0 if it is there."""
    if _git("cat-file", "-e", f"{commit}^{{commit}}") == 0:
        return 0
    tracking_ref = "" if SHA.fullmatch(commit) else f":refs/remotes/{commit}"
    source = commit.removeprefix("origin/") if tracking_ref else commit
    return _git("fetch", "--quiet", "--no-tags", "--depth=1", "origin", "--", f"{source}{tracking_ref}")


def _ask_git(*words: str) -> str:
    done = subprocess.run(["git", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return "" if done.returncode else os.fsdecode(done.stdout)


def _git(*words: str) -> int:
    return subprocess.run(["git", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode


def remove_tokens(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for the gate's process, without any token but that of the farm that measures."""
    harmless = {name: value for name, value in environment.items() if "TOKEN" not in name or name == "ONNXFARM_TOKEN"}
    farm_token = environment.get("GATE_SERVER_TOKEN")
    return {**harmless, "ONNXFARM_TOKEN": farm_token} if farm_token else harmless


def redact_tokens(text: str, environment: Mapping[str, str]) -> str:
    """Replace every token of the environment in a text by ***, because a farm's answer may contain anything.

    Tokens are the values of variables with TOKEN in their name; one with fewer than MIN_TOKEN characters stays.
    """
    tokens = {value for name, value in environment.items() if "TOKEN" in name and len(value) >= MIN_TOKEN}
    for token in tokens:
        text = text.replace(token, "***")
    return text


def _write_comment(forge: Forge, mark: str, answer: Answer) -> None:
    """Write the gate's comment, or replace the text of the one that it wrote before."""
    path = next((path for path, body in forge.list_comments() if body.startswith(mark)), "")
    if path or answer.is_news:
        forge.write_comment(f"{mark}\n{answer.comment}", path)


def _make_mark(model: str, environment: Mapping[str, str]) -> str:
    """Make the mark that the gate's comment begins with. It is a digest, because a name could end an HTML comment."""
    settings = [model, *(environment.get(f"GATE_{name}", "") for name in ("RUNTIMES", "SERVER"))]
    # two gates of one model differ by their options
    settings += filter(None, [environment.get("GATE_OPTIONS")])
    return f"<!-- onnxfarm gate {hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]} -->"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.environ, *sys.argv[2:]))

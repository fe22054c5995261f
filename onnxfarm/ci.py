"""Runs `onnxfarm gate` in a pipeline and publishes its answer: `python -m onnxfarm.ci github` or `gitlab`.

It fetches the commit to compare with. It publishes the answer as outputs of the step, annotations, a check, and one
comment that later answers replace.

With `--unchanged` it measures nothing. If there is nothing to measure, because the model is unchanged, new or removed,
it publishes that and exits with 0. Otherwise it publishes nothing and exits with 1. This mode needs only the standard
library.

Names of branches and models come through environment variables, never through a shell.
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

from farm.rules.presenting.markdown import escape_text
from onnxfarm import gate_process
from onnxfarm.forges import Answer, Comment, Forge, GitHub, GitLab, RefusedError
from onnxfarm.gate_process import CANCELLED, DEFAULT_CHECKS, FAILED, PASSED

UNCHANGED = "--unchanged"
# the prefix of a commit in GATE_AGAINST
GIT = "git:"
SHA = re.compile("[0-9a-f]{40,64}")
# the exit code of `onnxfarm gate` for options that cannot be used
USAGE_ERROR = 2
# endings of files that cannot be a model's external data
NO_WEIGHTS = (".onnx", ".npz", ".zip", ".md")
# how long the gate's process has to end, because GitHub kills the processes of a cancelled job after 10 s
GRACE_S = 4
CANCEL_SIGNALS = (signal.SIGINT, signal.SIGTERM)
MAX_BRANCH_CHARACTERS = 255
# a shorter value is hardly a token, and may occur in ordinary words
MIN_TOKEN_CHARACTERS = 8
READ_ONLY = "This token may not write here, as in a pull request from a fork: the job's summary has the answer."


class CancelledError(BaseException):
    """A signal asked the job to end. `exit_code`: 128 + the signal's number, as in a shell."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def main(forge_name: str, environment: Mapping[str, str], *options: str) -> int:
    """Run the gate and publish its answer. Return the gate's exit code, even if the forge refused the answer.

    A gate that ends with FAILED but wrote no verdict counts as INTERNAL. After a signal to end, 128 + its number is
    returned. `forge_name`: `github`; anything else is GitLab. `environment`: the variables of the job; KeyError is
    raised if GATE_MODEL is missing. With UNCHANGED in `options` nothing is measured: if there is nothing to measure,
    the reason is published and PASSED returned; otherwise nothing is published and FAILED returned.
    """
    forge: Forge = GitHub(environment) if forge_name == "github" else GitLab(environment)
    model = environment["GATE_MODEL"]
    if UNCHANGED in options:
        reason = _explain_nothing_to_measure(model, _find_base_commit(forge, environment))
        if not reason:
            return FAILED
        answer = _make_unmeasured_answer(PASSED, reason, environment)
        _publish_answer(forge, answer, environment)
        return answer.exit_code
    try:
        with _cancel_by_signals():
            answer = _run_gate(model, forge, environment)
    except CancelledError as cancelled:
        answer = _make_unmeasured_answer(cancelled.exit_code, "", environment)
    _publish_answer(forge, answer, environment)
    return answer.exit_code


def _publish_answer(forge: Forge, answer: Answer, environment: Mapping[str, str]) -> None:
    model = environment["GATE_MODEL"]
    with _print_refusals():
        # a cancelled job leaves the comment to the job of the later push
        if forge.comment_problem:
            print(forge.comment_problem, flush=True)
        elif answer.exit_code not in CANCELLED:
            _write_comment(forge, _make_mark(model, environment), answer)
    with _print_refusals():
        forge.publish_answer(answer, model)


@contextlib.contextmanager
def _cancel_by_signals() -> Iterator[None]:
    """Raise CancelledError inside the `with` on the first of CANCEL_SIGNALS, and ignore these signals from then on."""

    def cancel(number: int, frame: object) -> None:
        for ignored in CANCEL_SIGNALS:
            signal.signal(ignored, signal.SIG_IGN)
        raise CancelledError(number)

    earlier_handlers = {number: signal.signal(number, cancel) for number in CANCEL_SIGNALS}
    yield
    for number, handler in earlier_handlers.items():
        signal.signal(number, handler)


@contextlib.contextmanager
def _print_refusals() -> Iterator[None]:
    try:
        yield
    except RefusedError as refused:
        print(READ_ONLY if refused.status in (401, 403, 404) else f"{refused}.", flush=True)


def _run_gate(model: str, forge: Forge, environment: Mapping[str, str]) -> Answer:
    """Run `onnxfarm gate` as a process, print its output without tokens, and return its answer."""
    try:
        options = _make_gate_options(model, forge, environment)
    except ValueError as problem:
        reason = f"options cannot be read ({str(problem).rstrip('.')}): mend its quotes."
        return _make_unmeasured_answer(USAGE_ERROR, reason, environment)
    last_line = ""
    with tempfile.TemporaryDirectory(prefix="onnxfarm-ci-") as folder:
        comment_file = Path(folder) / "comment.md"
        command = [sys.executable, "-m", "onnxfarm.main", "gate", *options, f"--comment={comment_file}"]
        fence_before, fence_after = forge.make_output_fences()
        print(fence_before, flush=True)
        # stderr goes into stdout, so that all output is between the fences
        with subprocess.Popen(
            command,
            env=remove_tokens(environment),
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as gate:
            try:
                for line in gate.stdout or ():
                    redacted = redact_tokens(line, environment)
                    print(redacted.rstrip("\n"), flush=True)
                    last_line = redacted.strip() or last_line
            except CancelledError:
                _end_gate(gate)
                raise
            finally:
                print(fence_after, flush=True)
        comment = redact_tokens(comment_file.read_text(), environment) if comment_file.exists() else ""

    exit_code = gate_process.compute_exit_code(gate.returncode, is_judged=bool(comment))
    if not comment or exit_code in CANCELLED or gate_process.is_broken(exit_code):
        return _make_unmeasured_answer(exit_code, last_line, environment)

    from farm.rules.changes.gate_comment import SEPARATOR

    headline = comment.splitlines()[0].removeprefix("### ").replace("`", "")
    return Answer(exit_code, headline, comment, has_undecided=SEPARATOR in headline)


def _end_gate(gate: "subprocess.Popen[str]") -> None:
    """Terminate the gate's process, and kill it if it still runs after GRACE_S seconds."""
    gate.terminate()
    try:
        gate.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        gate.kill()


def _make_unmeasured_answer(exit_code: int, last_line: str, environment: Mapping[str, str]) -> Answer:
    """Make the answer of a gate that wrote no comment, and append it to GitHub's step summary.

    `last_line`: the last line that the gate printed, which says why.
    """
    headline = gate_process.explain_end(exit_code, last_line)
    comment = f"### {'✅' if exit_code == PASSED else '❌'} {escape_text(headline)}\n"
    if summary := environment.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a") as file:
            file.write(comment)
    return Answer(exit_code, headline, comment, needs_comment=exit_code != PASSED)


def _make_gate_options(model: str, forge: Forge, environment: Mapping[str, str]) -> list[str]:
    """Make the arguments of `onnxfarm gate` from the job's variables, and fetch the model to compare with.

    The gate compares two runtimes if a farm and several runtimes are given, but no other model. Otherwise it compares
    two models. Raises ValueError if a quote in GATE_OPTIONS is not closed.
    """
    server, against = environment.get("GATE_SERVER"), environment.get("GATE_AGAINST", "")
    runtimes = environment.get("GATE_RUNTIMES", "").split()
    options = [f"./{model}" if model.startswith("-") else model]
    options.append(f"--fail-on={environment.get('GATE_FAIL_ON') or DEFAULT_CHECKS}")
    for option, variable in (("budget", "GATE_BUDGET"), ("junit", "GATE_JUNIT"), ("evaluation", "GATE_EVALUATION")):
        if value := environment.get(variable):
            options.append(f"--{option}={value}")
    options += [f"--tolerance={tolerance}" for tolerance in environment.get("GATE_TOLERANCE", "").split()]
    options += shlex.split(environment.get("GATE_OPTIONS", ""))
    if server:
        # a farm refuses longer names, and names with characters that cannot be printed
        branch = "".join(filter(str.isprintable, forge.branch))[:MAX_BRANCH_CHARACTERS]
        options += [f"--server={server}", f"--branch={branch}", f"--commit={forge.commit}"]
    else:
        options.append("--ci")

    if server and not against and len(runtimes) > 1:
        return [*options, f"--baseline={runtimes[0]}", f"--candidate={runtimes[1]}"]
    against = against or _locate_base(model, _find_merge_base(forge))
    _fetch_missing_files(model, against)
    options.append(f"--against={against}")
    return [*options, "--ort", ",".join(runtimes)] if runtimes else options


def _fetch_missing_files(model: str, against: str) -> None:
    """Fetch what a shallow checkout lacks: the commit to compare with, and the model's files in Git LFS.

    A failure is ignored here: the gate reports that there is no such commit or model.
    """
    from onnxfarm import git_models

    if against.startswith(GIT):
        _fetch(against.removeprefix(GIT).partition(":")[0])
    _run_git("lfs", "install", "--local")
    path = Path(model)
    with contextlib.suppress(OSError):
        if git_models.is_lfs_pointer(path):
            # fetch the whole folder, because it holds the external data too
            folder = "" if path.parent == Path() else f"{path.parent.as_posix()}/"
            _run_git("lfs", "pull", f"--include={folder}*")


def _find_base_commit(forge: Forge, environment: Mapping[str, str]) -> str:
    """Return the commit, branch or tag to compare with, if the model has the same path there.

    Empty if the gate compares two runtimes, a file, a version of a farm or another path, or if there is no base.
    """
    against = environment.get("GATE_AGAINST")
    if not against:
        compares_runtimes = environment.get("GATE_SERVER") and len(environment.get("GATE_RUNTIMES", "").split()) > 1
        return "" if compares_runtimes else _find_merge_base(forge)
    commit = against.removeprefix(GIT)
    return "" if against == commit or ":" in commit else commit


def _find_merge_base(forge: Forge) -> str:
    """Return the commit that the pull request would be merged into; empty if the job runs for none.

    If the forge checked out a merge commit, its first parent is returned, because the event's base may be older.
    """
    header = _read_git("cat-file", "commit", "HEAD").partition("\n\n")[0].splitlines()
    parents = [line.removeprefix("parent ") for line in header if line.startswith("parent ")]
    is_merge = bool(forge.pull_request_head) and parents[1:] == [forge.pull_request_head]
    return parents[0] if is_merge else forge.base_commit


def _locate_base(model: str, commit: str) -> str:
    """Return `git:COMMIT`, or `git:COMMIT:PATH` if the model was renamed since; empty without a commit."""
    if not commit:
        return ""
    if _fetch(commit) != 0 or _has_model(commit, model):
        return f"{GIT}{commit}"
    earlier_path = _find_earlier_path(model, commit)
    return f"{GIT}{commit}:{earlier_path}" if earlier_path else f"{GIT}{commit}"


def _find_earlier_path(model: str, commit: str) -> str:
    """Return the path that the model had in the commit, by git's rename detection; empty if it was not renamed."""
    listed = _read_git(
        "diff", "--no-ext-diff", "--find-renames", "--diff-filter=R", "--name-status", "-z", commit, "HEAD"
    )
    # each rename is a status, the old path and the new path
    fields = listed.split("\0")
    earlier_paths = {new: old for old, new in zip(fields[1::3], fields[2::3], strict=False)}
    path = _read_git("ls-files", "--full-name", "-z", "--", f":(literal){model}").rstrip("\0")
    return earlier_paths.get(path, "")


def _has_model(commit: str, model: str) -> bool:
    return _run_git("cat-file", "-e", f"{commit}:./{model}") == 0


def _explain_nothing_to_measure(model: str, commit: str) -> str:
    """Say why there is nothing to measure; empty if there is something, or if git cannot tell."""
    if not commit or _fetch(commit) != 0:
        return ""
    is_in_head, is_in_base = _has_model("HEAD", model), _has_model(commit, model)
    if is_in_head and not is_in_base and not _find_earlier_path(model, commit):
        return f"New: {model} is not in its base, and nothing was compared."
    if is_in_base and not is_in_head and not Path(model).exists():
        return f"Removed: {model} is in its base alone, and nothing was measured."
    if is_in_head and is_in_base and _is_unchanged(model, commit):
        return f"Unchanged: {model} is its base, byte for byte, and nothing was measured."
    return ""


def _is_unchanged(model: str, commit: str) -> bool:
    """Say whether the model, and all files in its folder that may be its external data, are the same in the commit.

    False also where git cannot tell, and where a file is not tracked or is a symbolic link.
    """
    path = Path(model)
    folder = path if path.is_dir() else path.parent
    if _run_git("--literal-pathspecs", "ls-files", "--error-unmatch", "--", model):
        return False
    # a link's target may have changed, which git does not see
    if path.absolute() != path.resolve() or any(entry.is_symlink() for entry in folder.iterdir()):
        return False
    list_changed = ["diff", "--no-ext-diff", "--name-only", "--relative", "-z", "--end-of-options", commit]
    list_untracked = ["ls-files", "--others", "-z"]
    listed = b""
    for arguments in (list_changed, list_untracked):
        command = ["git", "--literal-pathspecs", *arguments, "--", str(folder)]
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if process.returncode:
            return False
        listed += process.stdout
    changed = [Path(os.fsdecode(name)) for name in listed.split(b"\0") if name]
    is_model_changed = any(name == path or path in name.parents for name in changed)
    is_data_changed = any(name.parent == path.parent and name.suffix.lower() not in NO_WEIGHTS for name in changed)
    return not is_model_changed and not is_data_changed


def _fetch(commit: str) -> int:
    """Fetch a commit, branch or tag unless the checkout has it. Return git's exit code; 0: the checkout has it now."""
    if _run_git("cat-file", "-e", f"{commit}^{{commit}}") == 0:
        return 0
    tracking_ref = "" if SHA.fullmatch(commit) else f":refs/remotes/{commit}"
    source = commit.removeprefix("origin/") if tracking_ref else commit
    return _run_git("fetch", "--quiet", "--no-tags", "--depth=1", "origin", "--", f"{source}{tracking_ref}")


def _read_git(*arguments: str) -> str:
    process = subprocess.run(["git", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return "" if process.returncode else os.fsdecode(process.stdout)


def _run_git(*arguments: str) -> int:
    command = ["git", *arguments]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode


def remove_tokens(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for the gate's process, without variables that have TOKEN in their name.

    Only ONNXFARM_TOKEN stays, the token of the farm that measures; GATE_SERVER_TOKEN replaces its value.
    """
    harmless = {name: value for name, value in environment.items() if "TOKEN" not in name or name == "ONNXFARM_TOKEN"}
    farm_token = environment.get("GATE_SERVER_TOKEN")
    return {**harmless, "ONNXFARM_TOKEN": farm_token} if farm_token else harmless


def redact_tokens(text: str, environment: Mapping[str, str]) -> str:
    """Replace every token in a text by ***, because a farm's answer may contain anything.

    Tokens are the values of variables with TOKEN in their name. A value of fewer than MIN_TOKEN_CHARACTERS stays.
    """
    tokens = {value for name, value in environment.items() if "TOKEN" in name and len(value) >= MIN_TOKEN_CHARACTERS}
    for token in tokens:
        text = text.replace(token, "***")
    return text


def _write_comment(forge: Forge, mark: str, answer: Answer) -> None:
    """Write the gate's comment, or replace the text of the one that it wrote before."""
    earlier = next((comment for comment in forge.list_comments() if comment.body.startswith(mark)), Comment("", ""))
    if earlier.path or answer.needs_comment:
        forge.write_comment(f"{mark}\n{answer.comment}", earlier.path)


def _make_mark(model: str, environment: Mapping[str, str]) -> str:
    """Make the HTML comment by which the gate finds its own comment again.

    The comment holds a digest of the model and options, because a name such as `-->` could end the HTML comment.
    """
    settings = [model, *(environment.get(f"GATE_{name}", "") for name in ("RUNTIMES", "SERVER"))]
    # two gates of the same model may differ by their options
    settings += filter(None, [environment.get("GATE_OPTIONS")])
    return f"<!-- onnxfarm gate {hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]} -->"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.environ, *sys.argv[2:]))

"""Writes a model as it is in a commit of its repository: `git:REF[:PATH]`."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from onnxfarm.model_files import list_external_data
from onnxfarm.problems import Usage

PREFIX = "git:"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
# the beginning of a file that Git LFS replaced by a pointer
_POINTER = b"version https://git-lfs.github.com/spec/"


def parse_commit(text: str) -> str:
    """Return the REF of `git:REF[:PATH]` if it is a commit's digest; empty for a branch, or for other text."""
    ref = text.removeprefix(PREFIX).partition(":")[0]
    return ref if text.startswith(PREFIX) and _COMMIT.fullmatch(ref) else ""


def check_out_model(text: str, *, beside: Path, folder: Path) -> Path:
    """Write the model of `git:REF[:PATH]` with its external data below `folder`, and return its path.

    `beside`: a model in the repository, whose path is taken where PATH is left out. Files of Git LFS are fetched.
    Raises Usage where git has no such commit or file.
    """
    ref, _, path = text.removeprefix(PREFIX).partition(":")
    repository = Path(_run_git("rev-parse", "--show-toplevel", at=beside.resolve().parent, text=text).decode().strip())
    place = Path(path) if path else beside.resolve().relative_to(repository)
    commit = _resolve_commit(ref, repository=repository, text=text)
    if place.name in ("", ".."):
        raise Usage(f"{text} cannot be read: {path} names no file.")
    if not _run_git("ls-tree", "-z", commit, "--", f":(literal){place.as_posix()}", at=repository, text=text):
        raise Usage(f"{text} has no {place}: {PREFIX}REF:PATH names the model's path there.")
    # a model called model.onnx gets its name from its folder
    folder_name = place.parent.name if place.parent.name not in ("", "..") else beside.resolve().parent.name
    folder = folder / (folder_name or "model")
    folder.mkdir(exist_ok=True)
    model = folder / place.name
    _write_file(commit, place, to=model, repository=repository, text=text)
    for name in list_external_data(model, _list_siblings(commit, place, repository=repository, text=text)):
        _write_file(commit, place.with_name(name), to=folder / name, repository=repository, text=text)
    return model


def _resolve_commit(ref: str, *, repository: Path, text: str) -> str:
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    try:
        return _run_git(*words, at=repository, text=text).decode().strip()
    except Usage as problem:
        if _run_git("rev-parse", "--is-shallow-repository", at=repository, text=text).strip() != b"true":
            raise
        branch = ref.removeprefix("origin/")
        raise Usage(
            f"{problem}; this checkout has the newest commit alone: let actions/checkout have fetch-depth: 0, or type "
            f"{shlex.join(['git', 'fetch', '--depth=1', 'origin', f'{branch}:refs/remotes/{ref}'])}."
        ) from problem


def _list_siblings(commit: str, place: Path, *, repository: Path, text: str) -> list[str]:
    """List the names of the files beside the model in the commit."""
    folder = [] if place.parent == Path() else ["--", f"{place.parent.as_posix()}/"]
    listed = _run_git("ls-tree", "-z", "--name-only", commit, *folder, at=repository, text=text).split(b"\0")
    names = [Path(os.fsdecode(path)).name for path in listed if path]
    return [name for name in names if name != place.name]


def _write_file(commit: str, place: Path, *, to: Path, repository: Path, text: str) -> None:
    with to.open("wb") as file:
        _run_git("cat-file", "--filters", f"{commit}:{place.as_posix()}", at=repository, text=text, out=file)
    if is_lfs_pointer(to):
        raise Usage(
            f"{text}: {place} is a pointer of Git LFS there: install git-lfs, run `git lfs install` and try again."
        )


def is_lfs_pointer(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER


def _explain_unfetched(text: str, lines: Sequence[str]) -> str:
    """Say why Git LFS did not fetch a file of the commit. `lines`: the lines of git's error."""
    if shutil.which("git-lfs") is None:
        return f"{text} is kept by Git LFS: install git-lfs, run `git lfs install` and try again."
    cause = next((line.rpartition(": ")[2] for line in lines if line.startswith("Error downloading")), lines[-1])
    return f"{text} is kept by Git LFS, which could not fetch it: {cause[:200].rstrip('.')}. Try `git lfs fetch`."


def _run_git(*words: str, at: Path, text: str, out: IO[bytes] | None = None) -> bytes:
    """Run git in the folder `at`. Return its output, or write it to `out`. Raises Usage, which begins with `text`."""
    try:
        process = subprocess.run(
            ["git", "-C", str(at), *words], stdout=out or subprocess.PIPE, stderr=subprocess.PIPE, check=False
        )
    except ValueError:
        raise Usage(f"{text!r} cannot be read: a name has no NUL in it.") from None
    except OSError as problem:
        raise Usage(f"{text} needs git, which cannot be started ({problem.strerror}).") from problem
    if process.returncode:
        complaint = process.stderr.decode("utf-8", "replace").strip().splitlines()
        if any("git-lfs" in line for line in complaint):
            raise Usage(_explain_unfetched(text, complaint))
        cause = complaint[-1] if complaint else "there is no such commit"
        raise Usage(f"{text} cannot be read: {cause.removeprefix('fatal: ')}")
    return process.stdout or b""

"""Checks out a model as it is in a commit of its git repository, named `git:REF[:PATH]`."""

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
# the first bytes of a pointer file, which takes the place of a file that Git LFS stores
_POINTER = b"version https://git-lfs.github.com/spec/"


def parse_commit(spec: str) -> str:
    """Return the REF of `git:REF[:PATH]` if it looks like a commit's digest: 7 to 64 hexadecimal digits; else empty."""
    ref = spec.removeprefix(PREFIX).partition(":")[0]
    return ref if spec.startswith(PREFIX) and _COMMIT.fullmatch(ref) else ""


def check_out_model(spec: str, *, model: Path, folder: Path) -> Path:
    """Write the model `git:REF[:PATH]`, with its external data, into a folder below `folder`. Return its path.

    `model`: a model in the same repository, whose path is used if PATH is left out. Files in Git LFS are fetched.
    Raises Usage if git has no such commit or file, cannot be started, or cannot fetch a file from Git LFS.
    """
    ref, _, path = spec.removeprefix(PREFIX).partition(":")
    root = _run_git("rev-parse", "--show-toplevel", repository=model.resolve().parent, spec=spec)
    repository = Path(root.decode().strip())
    place = Path(path) if path else model.resolve().relative_to(repository)
    commit = _resolve_commit(ref, repository=repository, spec=spec)
    if place.name in ("", ".."):
        raise Usage(f"{spec} cannot be read: {path} names no file.")
    if not _run_git("ls-tree", "-z", commit, "--", f":(literal){place.as_posix()}", repository=repository, spec=spec):
        raise Usage(f"{spec} has no {place}: {PREFIX}REF:PATH names the model's path there.")
    # the folder is called as in the repository, because a model.onnx gets its name from its folder
    folder_name = place.parent.name if place.parent.name not in ("", "..") else model.resolve().parent.name
    folder = folder / (folder_name or "model")
    folder.mkdir(exist_ok=True)
    written = folder / place.name
    _write_file(commit, place, to=written, repository=repository, spec=spec)
    for name in list_external_data(written, _list_siblings(commit, place, repository=repository, spec=spec)):
        _write_file(commit, place.with_name(name), to=folder / name, repository=repository, spec=spec)
    return written


def _resolve_commit(ref: str, *, repository: Path, spec: str) -> str:
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    try:
        return _run_git(*words, repository=repository, spec=spec).decode().strip()
    except Usage as problem:
        if _run_git("rev-parse", "--is-shallow-repository", repository=repository, spec=spec).strip() != b"true":
            raise
        branch = ref.removeprefix("origin/")
        raise Usage(
            f"{problem}; this checkout has the newest commit alone: let actions/checkout have fetch-depth: 0, or type "
            f"{shlex.join(['git', 'fetch', '--depth=1', 'origin', f'{branch}:refs/remotes/{ref}'])}."
        ) from problem


def _list_siblings(commit: str, place: Path, *, repository: Path, spec: str) -> list[str]:
    """List the names of the entries beside the model in the commit, without the model itself."""
    folder = [] if place.parent == Path() else ["--", f"{place.parent.as_posix()}/"]
    listed = _run_git("ls-tree", "-z", "--name-only", commit, *folder, repository=repository, spec=spec).split(b"\0")
    names = [Path(os.fsdecode(path)).name for path in listed if path]
    return [name for name in names if name != place.name]


def _write_file(commit: str, place: Path, *, to: Path, repository: Path, spec: str) -> None:
    with to.open("wb") as file:
        _run_git("cat-file", "--filters", f"{commit}:{place.as_posix()}", repository=repository, spec=spec, out=file)
    if is_lfs_pointer(to):
        raise Usage(
            f"{spec}: {place} is a pointer of Git LFS there: install git-lfs, run `git lfs install` and try again."
        )


def is_lfs_pointer(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER


def _explain_unfetched(spec: str, lines: Sequence[str]) -> str:
    """Say why Git LFS did not fetch a file. `lines`: the lines of git's error message."""
    if shutil.which("git-lfs") is None:
        return f"{spec} is kept by Git LFS: install git-lfs, run `git lfs install` and try again."
    cause = next((line.rpartition(": ")[2] for line in lines if line.startswith("Error downloading")), lines[-1])
    return f"{spec} is kept by Git LFS, which could not fetch it: {cause[:200].rstrip('.')}. Try `git lfs fetch`."


def _run_git(*words: str, repository: Path, spec: str, out: IO[bytes] | None = None) -> bytes:
    """Run git in a folder of the repository. Return its output, or write it to `out`. Raises Usage about `spec`."""
    try:
        process = subprocess.run(
            ["git", "-C", str(repository), *words], stdout=out or subprocess.PIPE, stderr=subprocess.PIPE, check=False
        )
    except ValueError:
        raise Usage(f"{spec!r} cannot be read: a name has no NUL in it.") from None
    except OSError as problem:
        raise Usage(f"{spec} needs git, which cannot be started ({problem.strerror}).") from problem
    if process.returncode:
        complaint = process.stderr.decode("utf-8", "replace").strip().splitlines()
        if any("git-lfs" in line for line in complaint):
            raise Usage(_explain_unfetched(spec, complaint))
        cause = complaint[-1] if complaint else "there is no such commit"
        raise Usage(f"{spec} cannot be read: {cause.removeprefix('fatal: ')}")
    return process.stdout or b""

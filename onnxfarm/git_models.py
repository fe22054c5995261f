"""A model as a commit of its repository has it: `git:REF[:PATH]`."""

import subprocess
from pathlib import Path

from onnxfarm.model_files import MOST_SIBLINGS, may_be_data, names_in
from onnxfarm.problems import Usage

PREFIX = "git:"
# what stands in a commit where Git LFS keeps the file elsewhere
_POINTER = b"version https://git-lfs.github.com/spec/"


def written_out(text: str, *, beside: Path, folder: Path) -> Path:
    """The model of `git:REF[:PATH]`, with the files that it names, written to `folder`. Raises Usage.

    `beside`: a model in the repository, whose own path is taken where none is given. Files of Git LFS are fetched as a
    checkout fetches them.
    """
    ref, _, path = text.removeprefix(PREFIX).partition(":")
    repository = Path(_asked("rev-parse", "--show-toplevel", at=beside.resolve().parent, text=text).decode().strip())
    place = Path(path) if path else beside.resolve().relative_to(repository)
    commit = _asked(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", at=repository, text=text
    )
    at = commit.decode().strip()
    content = _file(at, place, at=repository, text=text)
    model = folder / place.name
    model.write_bytes(content)
    for name in _siblings(at, place, at=repository, text=text):
        if names_in(content, name.encode()):
            (folder / name).write_bytes(_file(at, place.with_name(name), at=repository, text=text))
    return model


def _siblings(commit: str, place: Path, *, at: Path, text: str) -> list[str]:
    """Names of files in the model's folder that may be its data."""
    folder = [] if place.parent == Path() else ["--", f"{place.parent.as_posix()}/"]
    listed = _asked("ls-tree", "-z", "--name-only", commit, *folder, at=at, text=text).split(b"\0")
    names = [Path(name.decode("utf-8", "surrogateescape")).name for name in listed if name]
    return [name for name in names if name != place.name and may_be_data(name)] if len(names) <= MOST_SIBLINGS else []


def _file(commit: str, place: Path, *, at: Path, text: str) -> bytes:
    content = _asked("cat-file", "--filters", f"{commit}:{place.as_posix()}", at=at, text=text)
    if content.startswith(_POINTER):
        raise Usage(
            f"{text}: {place} is a pointer of Git LFS there: install git-lfs, run `git lfs install` and try again."
        )
    return content


def _asked(*words: str, at: Path, text: str) -> bytes:
    """What git answers. Raises Usage with its words."""
    try:
        done = subprocess.run(["git", "-C", str(at), *words], capture_output=True, check=False)
    except ValueError:
        raise Usage(f"{text!r} cannot be read: a name has no NUL in it.") from None
    except OSError as problem:
        raise Usage(f"{text} needs git, which cannot be started ({problem.strerror}).") from problem
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[-1] if said else "there is no such commit"
        raise Usage(f"{text} cannot be read: {why.removeprefix('fatal: ')}")
    return done.stdout

"""`git:REF[:PATH]`: the model as a commit has it, Git LFS and external data included; bad forms in a sentence."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from onnxfarm.git_models import check_out_model, parse_commit
from onnxfarm.model_files import list_model_files
from onnxfarm.problems import Usage

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"


def git(*words: str, at: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(at), *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a model that names its data, committed, and changed since."""
    folder = tmp_path / "repository"
    models = folder / "models"
    models.mkdir(parents=True)
    git("init", "-q", at=folder)
    (models / "encoder.onnx").write_bytes(b"old model of \x0cweights.data")
    (models / "weights.data").write_bytes(b"old weights")
    (models / "other.data").write_bytes(b"of another model")
    (folder / "top.onnx").write_bytes(b"at the top")
    git("add", "-A", at=folder)
    git("commit", "-qm", "first", at=folder)
    git("tag", "shipped", at=folder)
    (models / "encoder.onnx").write_bytes(b"new model")
    return folder


def test_the_model_is_written_out_with_the_data_that_it_names(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    model = check_out_model("git:shipped", model=repository / "models/encoder.onnx", folder=out)
    assert {path.name: path.read_bytes() for path in (out / "models").iterdir()} == {
        "encoder.onnx": b"old model of \x0cweights.data",
        "weights.data": b"old weights",
    }
    assert model == out / "models" / "encoder.onnx"


@pytest.mark.parametrize(
    ("ref", "way"), [("origin/other", "other:refs/remotes/origin/other"), ("v2", "v2:refs/remotes/v2")]
)
def test_a_shallow_checkout_names_what_fetches_the_commit(repository: Path, tmp_path: Path, ref: str, way: str) -> None:
    git("clone", "-q", "--depth=1", f"file://{repository}", str(tmp_path / "clone"), at=tmp_path)
    with pytest.raises(Usage, match=f"fetch-depth: 0, or type git fetch --depth=1 origin {way}"):
        check_out_model(f"git:{ref}", model=tmp_path / "clone/models/encoder.onnx", folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "commit"),
    [
        ("git:0123abc", "0123abc"),
        (f"git:{'a' * 40}:models/encoder.onnx", "a" * 40),
        ("git:origin/main", ""),
        ("git:abc", ""),
        ("git:", ""),
        ("0123abc", ""),
        ("0123abc.onnx", ""),
    ],
)
def test_a_commit_is_told_where_its_digits_stand(text: str, commit: str) -> None:
    assert parse_commit(text) == commit


def test_names_that_are_no_text_stand_beside_a_model(repository: Path, tmp_path: Path) -> None:
    (repository / "models" / os.fsdecode(b"caf\xe9.data")).write_bytes(b"of another model")
    git("add", "-A", at=repository)
    git("commit", "-qm", "odd", at=repository)
    beside = repository / "models/encoder.onnx"
    assert check_out_model("git:HEAD", model=beside, folder=tmp_path).read_bytes() == b"new model"
    assert list_model_files(beside) == [beside]


def test_another_path_of_the_commit_may_be_named(repository: Path, tmp_path: Path) -> None:
    model = check_out_model("git:HEAD:top.onnx", model=repository / "models/encoder.onnx", folder=tmp_path)
    assert model.read_bytes() == b"at the top"


def test_a_file_of_lfs_is_what_a_checkout_has_and_a_bare_pointer_is_refused(repository: Path, tmp_path: Path) -> None:
    (repository / "models/encoder.onnx").write_bytes(POINTER)
    git("commit", "-qam", "pointer", at=repository)
    with pytest.raises(Usage, match=r"models/encoder\.onnx is a pointer of Git LFS there: install git-lfs"):
        check_out_model("git:HEAD", model=repository / "models/encoder.onnx", folder=tmp_path)
    # as `git lfs install` sets up its filter
    git("config", "filter.stored.smudge", "echo the real model", at=repository)
    (repository / ".gitattributes").write_text("*.onnx filter=stored\n")
    git("add", ".gitattributes", at=repository)
    model = check_out_model("git:HEAD", model=repository / "models/encoder.onnx", folder=tmp_path)
    assert model.read_bytes() == b"the real model\n"


@pytest.fixture
def kept_by_lfs(repository: Path, tmp_path: Path) -> Path:
    """The repository once its models are pointers of Git LFS, whose files a remote has and this clone has not."""
    if shutil.which("git-lfs") is None:
        pytest.skip("git-lfs is not installed")
    remote = tmp_path / "remote.git"
    git("init", "-q", "--bare", str(remote), at=tmp_path)
    git("lfs", "install", "--local", at=repository)
    git("lfs", "track", "*.onnx", "*.data", at=repository)
    (repository / "models/encoder.onnx").write_bytes(b"of Git LFS \x0cweights.data")
    git("add", "--renormalize", ".", at=repository)
    git("add", ".gitattributes", at=repository)
    git("commit", "-qm", "to LFS", at=repository)
    git("remote", "add", "origin", remote.as_uri(), at=repository)
    git("push", "-q", "origin", "HEAD", at=repository)
    shutil.rmtree(repository / ".git/lfs/objects")
    (repository / "models/encoder.onnx").write_bytes(b"new model")
    return remote


def test_pointers_of_a_commit_are_fetched_from_where_git_lfs_keeps_their_files(
    repository: Path, kept_by_lfs: Path, tmp_path: Path
) -> None:
    model = check_out_model("git:HEAD", model=repository / "models/encoder.onnx", folder=tmp_path)
    assert [path.read_bytes() for path in list_model_files(model)] == [b"of Git LFS \x0cweights.data", b"old weights"]


def test_a_file_that_git_lfs_cannot_fetch_is_said_in_a_sentence(
    repository: Path, kept_by_lfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = repository / "models/encoder.onnx"
    shutil.rmtree(kept_by_lfs / "lfs")
    with pytest.raises(
        Usage, match=r"^git:HEAD is kept by Git LFS, which could not fetch it: .*Try `git lfs fetch`\.$"
    ):
        check_out_model("git:HEAD", model=beside, folder=tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(Usage, match=r"^git:HEAD is kept by Git LFS: install git-lfs"):
        check_out_model("git:HEAD", model=beside, folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("git:nowhere", "git:nowhere cannot be read: "),
        ("git:", "git: cannot be read: "),
        ("git:--output=x", "git:--output=x cannot be read: "),
        ("git:HEAD:missing.onnx", "git:HEAD:missing.onnx has no missing.onnx"),
        ("git:HEAD:../outside.onnx", "cannot be read: "),
        ("git:HEAD\0:x", "cannot be read: "),
        ("git:HEAD:models/..", "git:HEAD:models/.. cannot be read: models/.. names no file."),
        ("git:HEAD:/", "git:HEAD:/ cannot be read: / names no file."),
    ],
)
def test_what_git_does_not_have_is_refused_in_a_sentence(
    repository: Path, tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(Usage) as refusal:
        check_out_model(text, model=repository / "models/encoder.onnx", folder=tmp_path)
    assert told in str(refusal.value)
    assert not (repository / "x").exists()


def test_a_model_outside_any_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="not a git repository"):
        check_out_model("git:HEAD", model=tmp_path / "encoder.onnx", folder=tmp_path)

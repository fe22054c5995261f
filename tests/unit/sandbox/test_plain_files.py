"""What a child may leave in its folder for whoever reads it next, and what becomes of it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.sandbox import child, plain_files
from farm.sandbox.policy import Policy, SandboxError

Plant = Callable[[Path, Path], object]
PLANTED: dict[str, Plant] = {
    "a link to a secret": lambda place, secret: place.symlink_to(secret),
    "a second name of a secret": lambda place, secret: os.link(secret, place),
    "a pipe, where a reader waits for ever": lambda place, secret: os.mkfifo(place),
    "a folder": lambda place, secret: place.mkdir(),
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret_key"
    path.write_text("do not tell")
    return path


@pytest.mark.parametrize("what", PLANTED)
def test_only_a_plain_file_is_opened(what: str, work: Path, secret: Path) -> None:
    place = work / "inputs.npz"
    PLANTED[what](place, secret)
    assert not plain_files.is_plain(place)
    assert plain_files.list_plain_files(work, r".*") == []
    with (
        pytest.raises(plain_files.NotPlainFileError, match=r"inputs\.npz is a .* not a regular file"),
        plain_files.open_plain_file(place),
    ):
        pytest.fail("it was opened")


@pytest.mark.parametrize("what", [what for what in PLANTED if what != "a folder"])
def test_a_folder_with_anything_else_in_it_is_refused_however_deep_it_lies(what: str, work: Path, secret: Path) -> None:
    (work / "below").mkdir()
    plain_files.check_plain_files(work)
    PLANTED[what](work / "below" / "planted", secret)
    with pytest.raises(plain_files.NotPlainFileError, match="It left planted, which is"):
        plain_files.check_plain_files(work)


def test_a_link_to_a_folder_is_refused_too(work: Path, tmp_path: Path) -> None:
    (work / "engines").symlink_to(tmp_path)
    with pytest.raises(plain_files.NotPlainFileError, match="a link"):
        plain_files.check_plain_files(work)


def test_a_folder_of_more_files_than_anybody_needs_is_refused(work: Path) -> None:
    for number in range(11):
        (work / str(number)).touch()
    plain_files.check_plain_files(work, max_entries=11)
    with pytest.raises(plain_files.NotPlainFileError, match="more than 10 files"):
        plain_files.check_plain_files(work, max_entries=10)


def test_names_are_those_that_fit_as_a_whole(work: Path) -> None:
    for name in ("model.onnx", "model.onnx.data", "other", "model.onnx\n"):
        (work / name).touch()
    assert plain_files.list_plain_files(work, r"model\.onnx(\.data)?") == ["model.onnx", "model.onnx.data"]


@pytest.mark.parametrize("what", PLANTED)
def test_a_file_of_ours_is_laid_in_the_place_of_whatever_lies_there(what: str, work: Path, secret: Path) -> None:
    ours = work.parent / "ours"
    ours.write_text("reference")
    PLANTED[what](work / "reference.npz", secret)
    assert plain_files.copy_file_into(ours, work / "reference.npz").read_text() == "reference"
    assert secret.read_text() == "do not tell"
    assert stat.S_ISREG((work / "reference.npz").lstat().st_mode)


@pytest.mark.parametrize("what", PLANTED)
def test_a_folder_of_ours_is_made_in_the_place_of_whatever_lies_there(what: str, work: Path, secret: Path) -> None:
    PLANTED[what](work / "engines", secret)
    assert plain_files.is_folder(plain_files.make_folder(work / "engines"))
    assert secret.read_text() == "do not tell"


def test_a_link_that_stands_for_the_folder_to_write_in_opens_nothing(work: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (work / "engines").symlink_to(tmp_path / "home")
    with pytest.raises(SandboxError, match="is a link"):
        child.run_command(["/bin/true"], policy=Policy(read_write=(work, work / "engines")), timeout_s=10)


def test_last_words_reach_no_terminal_as_orders(work: Path) -> None:
    code = "import sys; sys.exit('\\x1b]0;owned\\x07\\u202ehello')"
    ending = child.run_command([os.path.realpath("/usr/bin/env"), "false"], policy=Policy(level="none"), timeout_s=10)
    assert ending.kind == "exited"
    python = next(
        Path(folder, "python3") for folder in ("/usr/bin", "/usr/local/bin") if Path(folder, "python3").exists()
    )
    ending = child.run_command([str(python), "-I", "-S", "-c", code], policy=Policy(level="none"), timeout_s=100)
    assert ending.describe().isprintable()
    assert "hello" in ending.describe()


def test_a_reply_nested_without_end_is_an_error_of_value(work: Path) -> None:
    from farm.sandbox.ending import Ending

    with pytest.raises(ValueError, match="nested too deep"):
        Ending(kind="done", reply=b"[" * 1_000_000).parse_reply()

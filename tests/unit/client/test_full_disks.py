"""A disk that is full is said to be: where, what is free and what is needed; and long reading is said to go on."""

import errno
import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from onnxfarm.disk_space import check_free_space
from onnxfarm.here import progress
from onnxfarm.outputs import write_bytes
from onnxfarm.problems import Infrastructure, Usage
from worker.agent.installation import installer


def test_less_room_than_is_needed_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with (
        pytest.raises(Infrastructure, match=rf"The disk of {tmp_path} has too little room: .* free, .* needed\. Go\."),
        check_free_space(tmp_path, needed_bytes=1 << 62, way_out="Go."),
    ):
        pass


def test_a_disk_that_becomes_full_is_said_to_be(tmp_path: Path) -> None:
    with (
        pytest.raises(Infrastructure, match=rf"The disk of {tmp_path}, or your quota there, is full"),
        check_free_space(tmp_path, way_out="Go."),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"x")


def test_another_error_of_a_disk_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as problem, check_free_space(tmp_path, way_out="Go."):
        (tmp_path / "nothing").read_bytes()
    assert problem.value.errno == errno.ENOENT


@pytest.mark.parametrize("path", [".", "/"])
def test_a_folder_is_no_file_to_write_to(path: str) -> None:
    with pytest.raises(Usage, match="is a folder: give the path of a file"):
        write_bytes(b"{}", Path(path))


def test_an_environment_without_room_is_no_failure_of_the_index(tmp_path: Path) -> None:
    words = ["sh", "-c", "echo 'failed: No space left on device (os error 28)' >&2; exit 1"]
    with pytest.raises(installer.DiskFullError, match=f"the disk of {tmp_path} is full"):
        installer._run_tool(words, cwd=tmp_path)


def test_what_takes_long_is_said_again() -> None:
    said = io.StringIO()
    with progress.print_periodically("reading a.onnx", console=Console(file=said), every_s=0.5):
        time.sleep(1.3)
    assert said.getvalue() == "reading a.onnx, for 1 s\n"
    with progress.print_periodically("reading a.onnx", console=Console(file=said)):
        pass
    assert said.getvalue().count("\n") == 1

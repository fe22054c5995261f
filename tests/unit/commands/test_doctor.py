"""`onnxfarm doctor`: what is missing is named, with the command that adds it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from onnxfarm.commands import doctor
from onnxfarm.main import app
from tests.conftest import PROJECT


def test_a_machine_that_runs_the_tests_lacks_nothing_of_a_server() -> None:
    done = CliRunner().invoke(app, ["doctor", "server"])
    assert (done.exit_code, done.output.count("✓"), done.output.count("✕")) == (0, 3, 0), done.output


def test_what_is_not_on_path_is_named_with_the_command_that_adds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(app, ["doctor", "tests"])
    assert done.exit_code == 1
    lines = [line.strip() for line in done.output.splitlines()]
    at = next(at for at, line in enumerate(lines) if line.startswith("✕ Chromium"))
    assert lines[at + 1] == "apt-get install chromium"


@pytest.mark.parametrize(("name", "said"), [("django", "server"), ("celery", "node")])
def test_a_package_that_is_not_installed_is_named_with_the_extra(name: str, said: str) -> None:
    hide = (
        "import importlib.metadata as installed; known = installed.version\n"
        f"def version(asked):\n    if asked == {name!r}: raise installed.PackageNotFoundError(asked)\n"
        "    return known(asked)\n"
        "installed.version = version\nfrom onnxfarm.main import app\n"
        f"app(['doctor', {said!r}])"
    )
    done = subprocess.run([sys.executable, "-c", hide], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert f"{name} is not installed" in done.stdout
    assert f"pip install '.[{said}]'" in done.stdout


def test_a_version_that_is_too_old_is_named_with_the_one_that_is_needed() -> None:
    lacking = list(doctor.list_missing(map(Requirement, ["packaging>=9999", "packaging>=1", "no-such-package-at-all"])))
    assert len(lacking) == 2
    assert lacking[0].endswith(", and >=9999 is needed")
    assert lacking[1] == "no-such-package-at-all is not installed"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("pass", ""),
        ("exit('none is here')", "none is here"),
        ("raise ValueError('it is broken: badly')", "it is broken: badly"),
        ("import no_such_module", "this is known once the packages are there"),
        ("exit(7)", "it ended with 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "it ended with -9"),
        ("import time; time.sleep(600)", "it gave no answer within 2 s"),
    ],
)
def test_what_is_asked_of_another_process_ends_in_a_sentence(
    code: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "CHECK_S", 2.0 if "sleep" in code else 60.0)
    assert doctor._run_code(code) == problem


def test_an_index_that_does_not_answer_is_told_from_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check imported a module that was renamed, and so could never fail."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    need = next(need for need in doctor.list_needs()["node"] if need.name == "a package index")
    assert need.find_problem() == "none answers"


@pytest.mark.parametrize("part", ["browser", "", "nodes", "--node", "node server", "../tests"])
def test_what_is_no_part_is_refused(part: str) -> None:
    done = CliRunner().invoke(app, ["doctor", part or "\x00"])
    assert done.exit_code == 2

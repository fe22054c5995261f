"""Exit codes."""

import json
from pathlib import Path

import pytest
import typer

from onnxfarm import problems
from tests.conftest import PROJECT


@pytest.mark.parametrize(
    ("problem", "exit_code"),
    [(problems.GateFailed, 1), (problems.Usage, 2), (problems.Infrastructure, 3), (problems.TimedOut, 4)],
)
def test_each_problem_is_one_sentence_and_its_exit_code(
    problem: type[problems.Problem], exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, problems.exit_with_problem():
        raise problem("The file is gone.")
    assert ended.value.exit_code == exit_code
    assert capsys.readouterr().err == "onnxfarm: The file is gone.\n"


def test_a_mistake_of_ours_has_an_exit_code_of_its_own_and_keeps_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit) as ended, problems.exit_with_problem():
        print(1 / 0)
    assert ended.value.exit_code == 70
    told = capsys.readouterr().err.splitlines()
    assert (told[0].startswith("Traceback"), told[-1]) == (True, "ZeroDivisionError: division by zero")


@pytest.mark.parametrize("ending", [typer.Exit(5), typer.Abort(), typer.BadParameter("no"), BrokenPipeError()])
def test_an_ending_that_the_command_line_knows_stays_what_it_is(ending: Exception) -> None:
    with pytest.raises(type(ending)) as ended, problems.exit_with_problem():
        raise ending
    assert ended.value is ending


def test_a_missing_module_names_what_to_install() -> None:
    with (
        pytest.raises(problems.Infrastructure, match=r"needs nonesuch, .* pip install '\.\[node\]' in this checkout"),
        problems.require_extra("node"),
    ):
        import nonesuch  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.parametrize(
    ("noted", "words"),
    [
        (
            {"url": "https://farm.example/install/onnxfarm-0.1.0-py3-none-any.whl",
             "archive_info": {"hashes": {"sha256": "ab"}}},
            'pip install "onnxfarm[node] @ https://farm.example/install/onnxfarm-0.1.0-py3-none-any.whl#sha256=ab"',
        ),
        ({"url": "https://farm.example/o.whl", "archive_info": {}}, '"onnxfarm[node] @ https://farm.example/o.whl"'),
        ({"url": "file:///home/ada/checkout", "dir_info": {}}, "Add a node"),
        ({"url": PROJECT.as_uri(), "dir_info": {}}, f"pip install '.[node]' in {PROJECT}."),
        ({"url": PROJECT.as_uri()}, "Add a node"),
        (None, "Add a node"),
    ],
)  # fmt: skip
def test_an_installed_client_says_where_its_own_release_comes_from(
    noted: dict[str, object] | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "onnxfarm-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxfarm\nVersion: 0.1.0\n")
    if noted is not None:
        (about / "direct_url.json").write_text(json.dumps(noted))
    monkeypatch.syspath_prepend(tmp_path)
    assert words in problems.explain_installation("node", code=tmp_path)


def test_a_client_that_is_no_distribution_points_at_the_farm(tmp_path: Path) -> None:
    assert "Add a node" in problems.explain_installation("node", code=tmp_path)

"""Exit codes."""

import pytest
import typer

from onnxfarm import problems


@pytest.mark.parametrize(
    ("problem", "exit_code"),
    [(problems.GateFailed, 1), (problems.Usage, 2), (problems.Infrastructure, 3), (problems.TimedOut, 4)],
)
def test_each_problem_is_one_sentence_and_its_exit_code(
    problem: type[problems.Problem], exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, problems.main_guard():
        raise problem("The file is gone.")
    assert ended.value.exit_code == exit_code
    assert capsys.readouterr().err == "onnxfarm: The file is gone.\n"


def test_a_mistake_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), problems.main_guard():
        print(1 / 0)


def test_a_missing_module_names_what_to_install() -> None:
    with (
        pytest.raises(problems.Infrastructure, match=r"needs nonesuch, .* pip install 'onnxfarm\[node\]'"),
        problems.needs_extra("node"),
    ):
        import nonesuch  # type: ignore[import-not-found]  # noqa: F401

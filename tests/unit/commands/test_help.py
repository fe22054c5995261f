"""What `--help` says of every command: the default of each option that has one, and which form `--json` takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.testing import CliRunner

from farm.config.embedded import quickstart
from onnxfarm.command_list import COMMANDS
from onnxfarm.examples import EXAMPLES
from onnxfarm.main import app

# left out, these do nothing: there is no default to show
WITHOUT_DEFAULT = {
    *(
        "--html",
        "--summary",
        "--junit",
        "--benchmark-json",
        "--timings",
        "--compiled",
        "--out",
        "--issue",
        "--report",
        "--json",
    ),
    *(
        "--matrix",
        "--shape",
        "--input",
        "--tolerance",
        "--sustained",
        "--expected",
        "--source",
        "--calibration",
        "--evaluation",
    ),
    *(
        "--wish",
        "--note",
        "--allow-package",
        "--allow-index",
        "--model",
        "--label",
        "--until",
        "--release",
        "--fingerprint",
    ),
    *("--probe", "--block"),
    *("--prompt", "--prompt-file", "--text-file"),
}
MEASURING = {"bench", "submit", "gate", "bisect", "sweep", "evaluate", "conformance", "diverge", "find"}


def commands() -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    """Every command with what is typed for it, those of groups too."""
    for name, entry in COMMANDS.items():
        target = entry.load()
        if not isinstance(target, typer.Typer):
            function, target = target, typer.Typer(add_completion=False)
            target.command(name)(function)
        yield from _below(name, typer.main.get_command(target))


def _below(name: str, command: TyperCommand | TyperGroup) -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    if isinstance(command, TyperGroup):
        for word, one in command.commands.items():
            yield from _below(f"{name} {word}", one)
    else:
        yield name, command


EVERY = dict(commands())


def options_of(command: TyperCommand | TyperGroup) -> list[TyperOption]:
    return [one for one in command.params if isinstance(one, TyperOption) and one.name != "help" and not one.hidden]


@pytest.mark.parametrize("words", EVERY)
def test_help_shows_what_is_taken_where_an_option_is_left_out(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    said = CliRunner().invoke(app, [*words.split(), "--help"]).output
    for option in options_of(EVERY[words]):
        [line] = [line for line in said.splitlines() if f"{option.opts[0]} " in line and line.startswith("│ ")][:1]
        if is_saying_a_default(option):
            assert "[default: " in line or "[required]" in line, f"{words}: {line}"
        assert "default:" not in (option.help or "").lower(), f"{words}: give show_default instead: {option.help}"


def is_saying_a_default(option: TyperOption) -> bool:
    if option.required or (option.is_flag and not option.secondary_opts):
        return False
    return option.opts[0] not in WITHOUT_DEFAULT or bool(option.show_default and option.show_default is not True)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_taken_by_its_command(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    typed = shlex.split(example)[1:]
    for word in typed:
        if Path(word).suffix in {".onnx", ".npz", ".json", ".yaml", ".csv"}:
            Path(word).touch()
    [words] = [words for words in EVERY if f"{' '.join(typed)} ".startswith(f"{words} ")]
    EVERY[words].make_context(words, typed[len(words.split()) :])


def test_every_command_opens_its_help_with_an_example_of_its_own() -> None:
    assert len(EXAMPLES) == len(EVERY)
    for words in ("", *COMMANDS, *EVERY):
        said = flat(CliRunner().invoke(app, [*words.split(), "--help"]).output)
        assert re.search(rf"Usage: \S+ {words}.*? Example: onnxfarm {words}", said), words


@pytest.mark.parametrize("words", EVERY)
def test_help_says_which_form_of_json_a_command_takes(words: str) -> None:
    for option in options_of(EVERY[words]):
        if "--json" not in option.opts:
            continue
        takes_file = words in MEASURING
        assert option.is_flag is not takes_file, words
        assert ("to FILE as JSON; - is stdout" if takes_file else "takes no FILE") in (option.help or ""), words


def test_every_measuring_command_writes_json() -> None:
    assert [words for words in MEASURING if not any("--json" in one.opts for one in options_of(EVERY[words]))] == []


@pytest.mark.parametrize("follower", ["--ort", "--wait"])
def test_json_without_its_file_does_not_swallow_the_next_option(follower: str) -> None:
    done = CliRunner().invoke(app, ["submit" if follower == "--wait" else "bench", "model.onnx", "--json", follower])
    assert (done.exit_code, f"--json: needs a FILE (- is stdout), and {follower} follows it." in flat(done.output)) == (
        2,
        True,
    )


def test_a_file_after_a_bare_json_is_refused() -> None:
    done = CliRunner().invoke(app, ["inspect", "model.onnx", "--json", "out.json"])
    assert (done.exit_code, "out.json" in done.output) == (2, True)


@pytest.mark.parametrize("words", ["farm users role jo boss", "farm users invite jo --role boss"])
def test_a_value_that_there_is_not_is_refused_without_the_words_of_a_library(words: str) -> None:
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 2
    assert "'boss' is not one of 'viewer', 'member', 'admin'." in flat(done.output)
    assert "Value error" not in done.output


@pytest.mark.parametrize("name", COMMANDS)
def test_completion_is_offered_by_the_top_command_alone(name: str) -> None:
    assert "--install-completion" not in CliRunner().invoke(app, [name, "--help"]).output


@pytest.mark.parametrize("words", [("submit", "--ort", "1.29.0"), ("plan", "--batch", "1,8", "--precision", "fp32")])
def test_an_axis_typed_for_a_command_that_has_a_matrix_is_told_where_it_goes(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [words[0], "model.onnx", *words[1:]])
    assert done.exit_code == 2
    assert f"`onnxfarm {words[0]}` reads runtimes, providers" in done.output
    assert "give it with --matrix" in done.output


def flat(output: str) -> str:
    return " ".join(output.replace("│", " ").split())


def test_the_quickstarts_help_follows_the_same_rule(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        quickstart.parse_options(["--help"])
    said = flat(capsys.readouterr().out)
    assert "to FILE as JSON" in said
    assert [said.count(f"(default: {text}") for text in ("8000", "transformer", "1.29.0")] == [1, 1, 1]

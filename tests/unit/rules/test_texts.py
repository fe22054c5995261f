"""Words of nodes, models and members: no sign in them commands a terminal, a log, a chat or Markdown."""

import logging
from io import StringIO

import pytest
from rich.console import Console

from farm.alerts.channels.apprise import defuse
from farm.config.logs import RedactingFormatter
from farm.contract.document_cells import Input, Parity
from farm.contract.document_comparisons import OperatorChange
from farm.contract.texts import replace_controls, replace_controls_in_json
from farm.rules.presenting.markdown import escape_text, format_code_span
from onnxfarm.outputs import print_lines
from onnxfarm.problems import Usage, exit_with_problem
from onnxfarm.screen import show
from tests.documents import make_cell, make_comparison, make_document


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (rb'"\u001b]0;title\u0007 \u009b31m \u007f \b\f"', rb'"\ufffd]0;title\ufffd \ufffd31m \ufffd \ufffd\ufffd"'),
        (b'"\xc2\x9b31m \x7f"', '"\ufffd31m \ufffd"'.encode()),
        (rb'"\u202Eevil \u2066"', rb'"\ufffdevil \ufffd"'),
        ('"\u202eevil"'.encode(), '"\ufffdevil"'.encode()),
        (rb'"C:\\bin\\u001b \n\r\t \u00e9 \u0100"', rb'"C:\\bin\\u001b \n\r\t \u00e9 \u0100"'),
        ('"é ü → 中"'.encode(), '"é ü → 中"'.encode()),
    ],
)
def test_what_a_node_or_a_model_says_holds_no_escape_sequence_of_a_terminal(text: bytes, clean: bytes) -> None:
    assert replace_controls_in_json(text) == clean


def test_a_sentence_on_a_terminal_commands_it_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BaseException), exit_with_problem():  # noqa: B017, PT011  typer's own exit
        raise Usage("The model \x1b]52;c;ZXZpbA==\x07 is not there.")
    assert capsys.readouterr().err == "onnxfarm: The model \ufffd]52;c;ZXZpbA==\ufffd is not there.\n"
    assert replace_controls("two\nlines\t\u202e") == "two\nlines\t\ufffd"


def test_a_model_whose_nodes_inputs_and_outputs_are_named_so_commands_no_pipeline() -> None:
    """GitHub obeys a line that begins with `::`."""
    evil = "\n::error::pwned <img src=x>\x1b[2J"
    cells = [
        make_cell(
            name, model=f"{name}{evil}", parity=Parity(text=f"Outputs are not judged{evil}", unjudged=True),
            inputs=[Input(name=evil, dtype="float32", shape=[1], made_by="seeded")],
        )
        for name in ("c1", "c2")
    ]  # fmt: skip
    figures = {"baseline_us": 10.0, "candidate_us": 20.0, "share": 0.8}
    called = {"verdict": "slower", "ratio": 2.0, "ci_low": 1.9, "ci_high": 2.1, "rounds": 8}
    operators = [OperatorChange(node=evil, covers=[evil], op_type=f"Mul{evil}", **figures, **called)]
    document = make_document(
        *cells, comparisons=[make_comparison(axis="model", operators=operators, reason=evil)], sentence=f"It is{evil}"
    )
    told = StringIO()
    console = Console(file=told, width=200)
    show(document, console=console)
    print_lines(f"reading {evil}", console=console)
    assert told.getvalue().count("::error::pwned") > 5
    assert not [line for line in told.getvalue().splitlines() if line.strip().startswith("::") or "\x1b" in line]


def test_a_node_cannot_write_a_line_of_its_own_into_the_log() -> None:
    forged = "x is wrong\n2026-11-22 00:00:00 INFO farm: root signed in\x1b[2J"
    record = logging.LogRecord("farm", logging.WARNING, "", 0, "Report of %s refused: %s", ("bench-1", forged), None)
    line = RedactingFormatter("%(levelname)s %(message)s").format(record)
    assert "\n" not in line
    assert line.isprintable()
    assert "root signed in" in line


def test_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError as problem:
        info = (type(problem), problem, problem.__traceback__)
    record = logging.LogRecord("farm", logging.ERROR, "", 0, "failed", (), info)
    assert RedactingFormatter("%(message)s").format(record).count("\n") > 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a | b\nc", r"a \| b c"),
        ("<img src=https://evil.example/x>", "\\<img src=https:\u2060//evil.example/x\\>"),
        ("[click](https://evil.example)", "\\[click\\](https:\u2060//evil.example)"),
        ("thanks @octocat", "thanks @\u2060octocat"),
        ("see #12, !7 and www.evil.example", "see #\u206012, !\u20607 and www\u2060.evil.example"),
        ("~~a~~ $b$ &lt;", r"\~\~a\~\~ \$b\$ \&lt;"),
        ("`code` *bold* _soft_ \\", r"\`code\` \*bold\* \_soft\_ \\"),
        ("x1.25 slower (95 %)", "x1.25 slower (95 %)"),
    ],
)
def test_a_node_cannot_write_markup_into_an_issue_or_a_pull_request(text: str, shown: str) -> None:
    assert escape_text(text) == shown


def test_code_spans_hold_whatever_they_are_given() -> None:
    assert format_code_span("a`b | c\n@octocat") == "`a'b / c @octocat`"
    assert format_code_span("") == ""


def test_a_nodes_words_call_nobody_in_a_chat() -> None:
    assert defuse("<!channel> @everyone <https://evil.example|the farm>") == (
        "‹!channel› @\u2060everyone ‹https://evil.example|the farm›"
    )


def test_a_stranger_s_long_address_is_a_short_line() -> None:
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "Not Found: /%s", ("a" * 30_000,), None)
    assert len(RedactingFormatter("%(message)s").format(record)) <= 1001

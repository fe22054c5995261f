"""`onnxfarm find`: what it prints and writes of a race on a made-up bench, and what cannot be asked."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import onnxruntime
import pytest
from rich.console import Console

from farm.contract.api.finds import FindOut
from farm.contract.cells import CellSpec
from farm.contract.document_find import GOALS, Found, make_json_schema
from farm.contract.reasons import ReasonCode
from farm.rules.presenting.race_settings import make_settings_table
from farm.workshop.orders import WorkshopError
from onnxfarm.commands import find as command
from onnxfarm.here import workbench
from onnxfarm.here.bench import Home, Measurer
from onnxfarm.here.bundle import LocalFiles
from onnxfarm.here.orders import Preparation
from onnxfarm.here.progress import Follower
from onnxfarm.problems import Stopped, Usage
from onnxfarm.remote.find import parse_answers
from tests.conftest import MODELS
from tests.unit.commands.conftest import Call, Write, refused
from tests.unit.commands.made_up import MadeUpBench
from tests.unit.rules.making import make_model
from worker.agent.machine import host_lock

MODEL = MODELS / "relu_op13_ir7.onnx"
pytestmark = pytest.mark.usefixtures("package_index")


def p50_ms(spec: CellSpec) -> float:
    settings = spec.session
    return (0.4 if spec.recipe.precision != "fp32" else 1.0) * (1.2 if settings.arena else 1.0) * (1 + settings.threads)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> MadeUpBench:
    """What `find` measures with in place of this machine."""
    made_up = MadeUpBench(p50_ms=p50_ms)

    @contextlib.contextmanager
    def opened(*_: object, **__: object) -> Iterator[MadeUpBench]:
        yield made_up

    monkeypatch.setattr(workbench, "open_workbench", opened)
    return made_up


def document(call: Call, path: Path, *words: object, code: int = 0) -> dict[str, Any]:
    result = call("find", MODEL, "--ort", "1.31.1", "--json", path, *words)
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.usefixtures("bench")
def test_the_document_passes_its_schema_and_its_code_makes_that_session(call: Call, tmp_path: Path) -> None:
    found = document(call, tmp_path / "found.json", "--minutes", "30")
    jsonschema_rs.Draft202012Validator(make_json_schema()).validate(found)
    assert found["state"] == "decided"
    assert found["answer"][0]["settings"]["session"] == {"name": "arena off", "arena": False}
    names: dict[str, Any] = {}
    exec(found["python"], names)
    options = names["options"]
    assert (options.intra_op_num_threads, options.enable_cpu_mem_arena) == (1, False)
    assert names["session"].get_providers() == ["CPUExecutionProvider"]
    assert isinstance(names["session"], onnxruntime.InferenceSession)
    again = json.loads(call("schema", "find").stdout)
    assert again == make_json_schema()


@pytest.mark.usefixtures("bench")
def test_the_gate_checks_the_same_settings(call: Call, tmp_path: Path) -> None:
    found = document(call, tmp_path / "found.json")
    words = found["gate"].split(" --matrix ")
    assert words[0] == f"onnxfarm gate {MODEL} --baseline onnxruntime==1.31.1 --candidate newest"
    matrix = json.loads(words[1].strip("'"))
    assert matrix["matrix"]["threads"] == [1]
    assert "runtime" not in matrix["matrix"]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_terminal_cuts_no_figure(width: int, bench: MadeUpBench, call: Call, tmp_path: Path) -> None:
    bench.noise = 0.02
    found = Found.model_validate(document(call, tmp_path / "found.json"))
    screen = StringIO()
    command.show(found, console=Console(file=screen, width=width))
    said = screen.getvalue()
    assert "…" not in said
    table = make_settings_table(found)
    assert [row[1].text for row in table.rows].count("apart") == len(found.apart) > 0
    for entry in (entry for row in table.rows for entry in row[:4]):
        assert entry.text in said
    assert found.sentence in said
    assert found.measured_with in said
    assert "Settings that left:" in said
    assert "launches." in said


def test_a_long_list_of_those_that_left_is_cut(bench: MadeUpBench, call: Call, tmp_path: Path) -> None:
    bench.p50_ms = lambda spec: float(spec.session.threads)
    space = json.dumps({"threads": [*range(1, 41)], "precision": "fp32", "batch": 1})
    found = Found.model_validate(document(call, tmp_path / "found.json", "--over", space))
    screen = StringIO()
    command.show(found, console=Console(file=screen, width=120))
    assert f"the first {command.MAX_SHOWN_DROPPED} of {len(found.left)}:" in screen.getvalue()


def test_the_batches_of_a_space_are_those_that_race(bench: MadeUpBench, call: Call, tmp_path: Path) -> None:
    bench.p50_ms = lambda spec: {2: 1.0, 4: 1.5}[spec.workload.batch or 1]
    space = json.dumps({"threads": [1], "precision": "fp32", "batch": [2, 4]})
    found = document(call, tmp_path / "found.json", "--over", space, "--goal", "throughput")
    assert (found["size"], found["answer"][0]["settings"]["batch"]) == (2, 4)


def test_nothing_within_a_budget_ends_with_1(bench: MadeUpBench, call: Call, tmp_path: Path) -> None:
    found = document(call, tmp_path / "found.json", "--max-p50", "1us", code=1)
    assert found["sentence"].startswith("Nothing within 0.001 ms: the fastest accurate one,")
    assert found["budgets"] == {"max-p50": 0.001}


def test_ctrl_c_ends_with_130_and_what_is_known(bench: MadeUpBench, call: Call, tmp_path: Path) -> None:
    measure = bench.measure

    def stopped(plan: Any) -> Any:
        if bench.measured:
            raise Stopped("Stopped before the end.")
        return measure(plan)

    bench.measure = stopped  # type: ignore[method-assign]
    found = document(call, tmp_path / "found.json", code=130)
    assert (found["is_stopped"], found["state"]) == (True, "undecided")
    assert found["answer"]


@pytest.mark.usefixtures("bench")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--goal", "speed"], "--goal: "),
        (["--minutes", "0"], "--minutes is 0"),
        (["--max-p50", "fast"], "--max-p50 is 'fast': give a time"),
        (["--max-p50", "0ms"], "give a time"),
        (["--max-memory", "1 XB"], "--max-memory is '1 XB': give a size"),
        (["--min-accuracy", "97%"], "--min-accuracy needs labelled data"),
        (["--provider", "cpux"], "did you mean 'cpu'"),
        (["--over", "thread: [1]"], "did you mean"),
        (["--over", '{"threads": []}'], "is empty"),
        (["--over", '{"threads": [1]}', "--provider", "cpu"], "leave out one of the two"),
        (["--over", '{"threads": [1], "scenario": "fresh"}'], "The space has the scenario fresh"),
        (["--over", '{"threads": [1]}'], "The space has one setting that can run"),
        (["--over", '{"provider": ["cuda"], "threads": [1, 2]}'], "No setting of the space can run here"),
        (["--over", '{"provider": ["cpu", "cuda"], "threads": [1]}'], "1 cannot run"),
        (["--batch", "none"], "whole number"),
    ],
)
def test_what_cannot_be_asked_ends_with_2(words: list[str], said: str, call: Call, write: Write) -> None:
    if words[0] == "--over" and not words[1].startswith("{"):
        words = ["--over", write("space.yaml", words[1])]
    assert said in refused(call("find", MODEL, "--ort", "1.31.1", *words))


@pytest.mark.usefixtures("bench")
def test_sizes_and_times_have_units() -> None:
    assert command._parse_amount("300MB", "--max-memory", command.SIZES, "") == 3e8
    assert command._parse_amount("1 GiB", "--max-memory", command.SIZES, "") == 2**30
    assert command._parse_amount("0.5 s", "--max-p50", command.TIMES, "") == 500.0
    assert command._parse_amount("97 %", "--min-accuracy", command.SHARES, "") == pytest.approx(0.97)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measurer:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    preparation = cast(Preparation, None)
    return Measurer(Home(tmp_path), tmp_path, LocalFiles(), make_model(), preparation, Console(quiet=True))


def test_waiting_for_the_machine_takes_none_of_the_minutes(run: Measurer) -> None:
    began, holding = run.clock(), threading.Event()

    def hold() -> None:
        with host_lock.hold_machine(patience_s=0):
            holding.set()
            time.sleep(1.0)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    asked = time.monotonic()
    with run._hold_machine(Follower([], console=run.console, bar=None)):
        assert time.monotonic() - asked > 0.5
        assert run.clock() - began < 0.5
    thread.join()
    before = run.clock()
    time.sleep(0.01)
    assert run.clock() > before, "it goes on where it stood"


def test_ctrl_c_ends_the_wait_for_the_machine_as_stopped(run: Measurer) -> None:
    run.is_cancelled = lambda: True
    waiting = run._hold_machine(Follower([], console=run.console, bar=None))
    with host_lock.hold_machine(patience_s=0), pytest.raises(Stopped), waiting:
        pass


def test_a_model_that_cannot_be_made_is_not_saved_and_is_no_bug_of_ours(run: Measurer, tmp_path: Path) -> None:
    class NoVariant:
        def make_variant(self, spec: CellSpec) -> None:
            raise WorkshopError(ReasonCode.VARIANT_IMPOSSIBLE, "It has no such operator.")

    run.preparation = cast(Preparation, NoVariant())
    with pytest.raises(Usage, match="It has no such operator"):
        workbench.Workbench(run, MODEL).save_variant(cast(CellSpec, None), tmp_path)


def test_the_sentence_of_a_race_that_failed_says_why() -> None:
    document = {"model": "m", "goal": "latency", "state": "undecided", "sentence": "Best so far.", "size": 2}
    race = {
        "hardware": "cpu",
        "state": "failed",
        "sentence": "The node was lost. Best so far.",
        "doing": "",
        "run": None,
    }
    race |= {"runs": [], "minutes": 1.0, "answer": document}
    search = {"id": 1, "url": "", "version": 1, "goal": "latency", "is_open": False, "sentence": "", "everywhere": None}
    found = FindOut.model_validate(search | {"races": [race], "started_at": "2026-11-27T00:00:00Z"})
    assert parse_answers(found)["cpu"].sentence == "The node was lost. Best so far."


def test_goals_are_those_of_the_document() -> None:
    assert set(GOALS) == {*Found.model_fields["goal"].annotation.__args__}

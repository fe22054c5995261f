"""The command line against a farm over real HTTP, with a real `prepare` worker."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from farm.accounts.models import Team, User
from farm.alerts.models import Release
from farm.registry.models import Version
from farm.registry.services import store_blob_within_quota
from farm.registry.storage import Draft
from farm.runs.models import Arm, CompiledModel
from farm.runs.services import cancel_run
from onnxfarm.problems import Usage
from onnxfarm.remote.account import Account, locate_config_file
from onnxfarm.remote.client import Client
from tests.integration.dashboard.rows import begin_run, finished_run, make_node, make_version
from tests.processes import Process

Command = Callable[..., Result]
# what a thread of the farm under test, in this very process, says between two rules when its visitor left
OF_SERVER = re.compile(r"^-{40}\nException occurred during processing of request.*?^-{40}\n", re.DOTALL | re.MULTILINE)


def sentence(result: Result, *, code: int) -> str:
    """What a failed command said: one line, no trace."""
    assert result.exit_code == code, result.output
    assert "Traceback" not in OF_SERVER.sub("", result.stderr)
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("onnxfarm: ")
    return last


def test_login_checks_the_token_and_remembers_it_for_later_commands(
    onnxfarm: Command, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = onnxfarm("login", "--server", f"{account.server}/", "--token", account.token)
    assert (result.exit_code, "member (vision)" in result.stderr) == (0, True)
    assert locate_config_file().stat().st_mode & 0o077 == 0
    monkeypatch.delenv("ONNXFARM_SERVER")
    monkeypatch.delenv("ONNXFARM_TOKEN")
    assert onnxfarm("models").exit_code == 0


def test_a_wrong_token_and_an_unnamed_farm_are_usage_errors(onnxfarm: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXFARM_TOKEN", "ofk_wrong")
    assert "valid token" in sentence(onnxfarm("models"), code=2)
    monkeypatch.delenv("ONNXFARM_TOKEN")
    assert "ONNXFARM_TOKEN" in sentence(onnxfarm("models"), code=2)
    monkeypatch.delenv("ONNXFARM_SERVER")
    assert "--server" in sentence(onnxfarm("models"), code=2)
    assert "http://" in sentence(onnxfarm("models", "--server", "farm.example"), code=2)


def test_models_are_listed_with_a_hint_while_there_are_none(onnxfarm: Command, farm: Client, models: Path) -> None:
    assert "onnxfarm submit" in onnxfarm("models").stdout
    farm.upload([models / "lstm.onnx"], fields={"model": "speech"})
    assert "speech" in onnxfarm("models").stdout
    assert json.loads(onnxfarm("models", "spe", "--json").stdout)[0]["name"] == "speech"
    assert json.loads(onnxfarm("models", "nothing", "--json").stdout) == []


@pytest.mark.slow
def test_a_plan_shows_what_would_run_and_what_would_not(
    prepare_worker: Process, onnxfarm: Command, models: Path, tmp_path: Path, team: Team, owner: User
) -> None:
    make_node(team, owner)
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text("matrix:\n  runtime: [1.29.0, 1.31.1]\n  batch: [1, 2]\n")
    result = onnxfarm("plan", models / "mlp_external.onnx", "--matrix", matrix)
    assert result.exit_code == 0, result.output
    assert "mlp_external.onnx.data" in result.stderr  # found by its name in the model
    assert "4 cells in 1 block, about" in result.stdout
    answer = json.loads(onnxfarm("plan", models / "mlp_external.onnx", "--matrix", matrix, "--json").stdout)
    assert {"cells", "blocks", "refused", "minutes"} <= set(answer)
    assert Version.objects.count() == 1
    matrix.write_text("matrix:\n  runtime: [1.31.99, 1.31.1]\n")
    unknown = onnxfarm("plan", models / "mlp_external.onnx", "--matrix", matrix)
    assert "1.31.99" in sentence(unknown, code=2)
    Release.objects.create(distribution="onnxruntime", version="1.99.0rc1", is_prerelease=True)
    early = json.loads(onnxfarm("plan", models / "mlp_external.onnx", "--pre", "--json").stdout)
    planned = {arm["spec"]["runtime"]["version"] for block in early["blocks"] for arm in block["arms"]}
    assert planned == {"1.99.0rc1"}


@pytest.mark.slow
def test_a_plan_is_of_the_sizes_that_were_chosen_or_asked_for(
    prepare_worker: Process, onnxfarm: Command, models: Path, team: Team, owner: User
) -> None:
    make_node(team, owner)

    def workload(*words: str) -> dict[str, Any]:
        answer = json.loads(onnxfarm("plan", models / "encoder_dyn.onnx", "--json", *words).stdout)
        found: dict[str, Any] = answer["blocks"][0]["arms"][0]["spec"]["workload"]
        return found

    chosen = workload()
    assert (chosen["shapes"], set(chosen["inputs"])) == ({"seq": 64}, {"input_ids"})
    asked = workload("--shape", "seq=7", "--input", "input_ids=0..3")
    assert (asked["shapes"], asked["inputs"]) == ({"seq": 7}, {"input_ids": "0..3"})
    assert (
        "no dynamic dimension 'height'" in onnxfarm("plan", models / "encoder_dyn.onnx", "--shape", "height=7").output
    )


@pytest.mark.slow
def test_a_rejected_model_is_a_usage_error_with_the_farms_sentence(
    prepare_worker: Process, onnxfarm: Command, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"nothing that anyone could load " * 9)
    assert "bad.onnx was rejected" in sentence(onnxfarm("submit", bad), code=2)


def test_bad_files_and_matrices_are_refused_before_anything_is_sent(onnxfarm: Command, models: Path, tmp_path: Path):
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text("matrix:\n  runtme: [1.31.1]\n")
    assert "runtime" in sentence(onnxfarm("submit", models / "lstm.onnx", "--matrix", matrix), code=2)
    assert "cannot be read" in sentence(onnxfarm("submit", models / "lstm.onnx", "--matrix", tmp_path / "no"), code=2)
    assert "not a file" in sentence(onnxfarm("submit", tmp_path / "none.onnx"), code=2)
    (tmp_path / "model.pt").touch()
    assert ".onnx" in sentence(onnxfarm("submit", tmp_path / "model.pt"), code=2)
    assert "--wait" in sentence(onnxfarm("submit", models / "lstm.onnx", "--json", tmp_path / "r.json"), code=2)
    (tmp_path / "empty.onnx").touch()
    assert "0 bytes" in sentence(onnxfarm("submit", tmp_path / "empty.onnx"), code=2)
    assert not Version.objects.exists()


@pytest.mark.parametrize("words", [("status", "7"), ("results", "7"), ("results", "7", "--csv"), ("cancel", "7")])
def test_a_run_that_is_not_there_is_a_usage_error(onnxfarm: Command, words: tuple[str, ...]) -> None:
    assert "7" in sentence(onnxfarm(*words), code=2)


@pytest.mark.parametrize("command", ["status", "results", "cancel", "more"])
def test_a_run_is_named_by_its_number(onnxfarm: Command, command: str) -> None:
    assert "number" in sentence(onnxfarm(command, "../../me"), code=2)


def test_two_forms_of_results_at_once_are_refused(onnxfarm: Command) -> None:
    assert "exclude" in sentence(onnxfarm("results", "1", "--json", "--csv"), code=2)


def test_waiting_for_a_run_ends_as_the_run_did(onnxfarm: Command, team: Team, owner: User, member: User) -> None:
    node = make_node(team, owner)
    done = finished_run(make_version(team, member), node, member)
    assert onnxfarm("status", done.pk, "--wait").exit_code == 0
    stopped = begin_run(make_version(team, member, name="other"), member)
    cancel_run(run=stopped, by=member)
    assert onnxfarm("status", stopped.pk).exit_code == 0
    waited = onnxfarm("status", stopped.pk, "--wait")
    assert f"Run {stopped.pk}: cancelled" in waited.stdout
    assert "could be measured" in sentence(waited, code=1)


def test_an_option_that_would_do_nothing_is_refused(onnxfarm: Command, tmp_path: Path) -> None:
    assert "--wait follows one run" in sentence(onnxfarm("status", "--wait"), code=2)
    assert "name one of --json" in sentence(onnxfarm("results", "1", "-o", tmp_path / "cells.txt"), code=2)
    assert not list(tmp_path.iterdir())


def test_a_compiled_model_is_fetched_into_a_file(
    onnxfarm: Command, team: Team, owner: User, member: User, tmp_path: Path
) -> None:
    assert "name it with -o" in sentence(onnxfarm("results", "1", "--compiled", "c1"), code=2)
    run = finished_run(make_version(team, member), make_node(team, owner), member)
    target = tmp_path / "net_ctx.onnx"
    nothing = sentence(onnxfarm("results", run.pk, "--compiled", "c1", "-o", target), code=2)
    assert f"Nothing was compiled for cell c1 of run {run.pk}" in nothing
    arm = Arm.objects.get(block__run=run, name="c1")
    draft = Draft("compiled.onnx", limit_bytes=100)
    draft.write(b"a compiled model")
    draft.seal()
    blob = store_blob_within_quota(team=team, draft=draft)
    draft.discard()
    CompiledModel.objects.create(attempt=arm.block.attempts.get(), arm=arm.number, blob=blob)
    assert onnxfarm("results", run.pk, "--compiled", "c1", "-o", target).exit_code == 0
    assert target.read_bytes() == b"a compiled model"


def test_runs_are_listed_with_a_hint_while_there_are_none(onnxfarm: Command) -> None:
    assert "onnxfarm submit" in onnxfarm("status").stdout


def test_a_large_file_is_uploaded_with_its_progress(farm: Client, tmp_path: Path) -> None:
    path = tmp_path / "big.onnx"
    path.write_bytes(bytes(3_000_000))
    seen: list[int] = []
    version = farm.upload([path], progress=seen.append)
    assert (version.bytes, sum(seen)) == (3_000_000, 3_000_000)
    assert len(seen) > 10


def test_a_refusal_carries_the_farms_sentence_and_hint(farm: Client, tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"1")
    with pytest.raises(Usage, match=r"There is no \.onnx file among weights\.bin\. Send an \.onnx"):
        farm.upload([path])


def test_help_lists_every_command_without_importing_it(onnxfarm: Command) -> None:
    text = onnxfarm("--help").stdout
    for name in ("submit", "plan", "status", "results", "cancel", "more", "models", "login", "verdict"):
        assert name in text
    assert onnxfarm("submit", "--help").exit_code == 0
    assert onnxfarm("sumbit").exit_code == 2

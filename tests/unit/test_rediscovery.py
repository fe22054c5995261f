"""The scoreboard of rediscovery without its minutes: claims, models, the judge's rules, and what the rows come to."""

import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
import onnxruntime
import pytest

from tests.acceptance.rediscovery import __main__ as command
from tests.acceptance.rediscovery import finding, judging, table
from tests.acceptance.rediscovery.claims import Claim, Kind, claims
from tests.acceptance.rediscovery.judging import JudgeProblem, Times, ruled
from tests.acceptance.rediscovery.making import written
from tests.acceptance.rediscovery.rows import Ledger, Row
from tests.conftest import PROJECT

CLAIMS = claims()
RECORDED = PROJECT / "tests" / "acceptance" / "rediscovery" / "rows.jsonl"
PAGE = PROJECT / "docs" / "reference" / "published-changes.md"


def test_there_are_enough_published_changes_and_unchanged_pairs_each_with_its_source() -> None:
    published = [claim for claim in CLAIMS if claim.kind in (Kind.SLOWER, Kind.FASTER)]
    assert len(published) >= 25
    assert sum(claim.kind is Kind.SAME for claim in CLAIMS) >= 10
    assert [claim.name for claim in published if not claim.number or not claim.says] == []
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_the_releases_of_a_claim_are_published_and_in_order(claim: Claim) -> None:
    assert claim.releases[0] == claim.before
    assert claim.after in claim.releases[1:]
    assert claim.url.startswith("https://github.com/microsoft/onnxruntime/")


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_the_model_of_a_claim_is_the_same_each_time_and_runs(claim: Claim, tmp_path: Path) -> None:
    model, inputs = written(claim.name, claim.maker, tmp_path / "once")
    again = written(claim.name, claim.maker, tmp_path / "twice")
    assert [crc32(path.read_bytes()) for path in (model, inputs)] == [crc32(path.read_bytes()) for path in again]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    with np.load(inputs) as feeds:
        assert session.run(None, dict(feeds))


def test_a_change_holds_where_all_rounds_but_one_say_so_and_it_is_large_enough() -> None:
    times = {"1.20.0": [100.0] * 8, "1.21.0": [130.0] * 7 + [90.0]}
    ruling = ruled(times, before="1.20.0", after="1.21.0")
    assert ruling.holds("slower")
    assert not ruling.holds("faster")
    assert (ruling.alike, ruling.since) == (7, "1.21.0")
    small = ruled({"a": [100.0] * 8, "b": [104.0] * 8}, before="a", after="b")
    assert small.is_quiet
    assert small.since == ""
    assert ruled({"a": [100.0] * 8, "b": [130.0] * 6 + [90.0] * 2}, before="a", after="b").is_quiet


def test_the_judge_dates_a_change_by_the_first_release_with_more_than_half_of_it() -> None:
    times = {"1": [100.0] * 8, "2": [101.0] * 8, "3": [50.0] * 8, "4": [51.0] * 8}
    assert ruled(times, before="1", after="4").since == "3"


def test_an_interpreter_with_another_release_is_no_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho \'{"cpu_us": 1.0, "wall_us": 1.0, "share": 0.5, "runtime": "1.20.1"}\'\n')
    python.chmod(0o755)
    files = {"model": tmp_path / "m.onnx", "inputs": tmp_path / "m.npz"}
    assert judging.measured({"1.20.1": python}, rounds=2, **files) == Times({"1.20.1": [1.0, 1.0]}, share=0.5)
    with pytest.raises(JudgeProblem, match=r"has ONNX Runtime 1\.20\.1, not 1\.21\.0"):
        judging.measured({"1.21.0": python}, rounds=1, **files)
    python.write_text("#!/bin/sh\necho 'NotImplemented: Could not find an implementation' >&2\nexit 1\n")
    with pytest.raises(JudgeProblem, match=r"1\.15\.0 does not run it: NotImplemented"):
        judging.measured({"1.15.0": python}, rounds=1, **files)


def test_the_reported_node_or_its_fused_form_explains_and_what_stands_beside_does_not() -> None:
    silu = next(claim for claim in CLAIMS if claim.name == "silu")
    assert silu.names("reported_mul", "Mul", ())
    assert silu.names("some", "QuickGelu", ())
    assert silu.names("some", "Other", ("reported_sigmoid",))
    assert not silu.names("beside_matmul", "MatMul", ("beside_transpose",))


def _claim(name: str, kind: Kind) -> Claim:
    return replace(CLAIMS[0], name=name, kind=kind)


FOUND = Row(
    "whole", Kind.SLOWER, "a processor", holds=True, judge_ratio=1.3, judge_alike="8 of 8", judge_since="1.21.0",
    verdict="slower", ratio=1.31, low=1.28, high=1.35, rounds=8, since="1.21.0", is_dated=True,
    operator="LRN reported", is_explained=True, core_share=0.99, minutes=2.0,
)  # fmt: skip
MADE_UP = {
    row.name: row
    for row in (
        FOUND,
        replace(FOUND, name="missed", verdict="undecided", is_dated=False, why="8 rounds see 14 % | no less."),
        replace(FOUND, name="gone", holds=False, judge_ratio=0.99, verdict="equal", is_dated=False),
        replace(FOUND, name="quiet", kind=Kind.SAME, verdict="equal"),
        replace(FOUND, name="alarm", kind=Kind.SAME, verdict="slower"),
        replace(FOUND, name="moved", kind=Kind.SAME, holds=False, verdict="slower"),
        replace(FOUND, name="own", kind=Kind.OWN),
    )
}
MADE_UP_CLAIMS = tuple(_claim(name, row.kind) for name, row in MADE_UP.items())


def test_the_headline_counts_a_miss_a_change_that_is_not_here_and_an_alarm() -> None:
    said = table.headline((*MADE_UP_CLAIMS, _claim("later", Kind.FASTER)), MADE_UP)
    assert said.startswith("1 of 2 published changes that hold on this processor were found, dated and explained")
    assert "1 of the 3 published ones do not hold here." in said
    assert "1 of 2 unchanged pairs stayed silent." in said
    assert "1 claims have not been run yet." in said
    assert "1 pairs that are publicly unchanged changed here by the judge" in said


def test_the_tables_name_misses_first_and_why() -> None:
    text = table.tables(MADE_UP_CLAIMS, MADE_UP)
    assert text.index("| missed |") < text.index("| whole |") < text.index("| gone |") < text.index("| quiet |")
    assert "8 rounds see 14 % / no less." in text
    assert "not here" in text


def test_the_page_keeps_what_stands_around_its_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}old{table.END}\nafter\n")
    table.write_into(page, "new")
    assert page.read_text() == f"before\n{table.BEGIN}\n\nnew\n\n{table.END}\nafter\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="no place for the tables"):
        table.write_into(page, "new")


def test_rows_are_kept_one_by_one_the_last_of_a_claim_counts_and_half_a_line_does_not(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    ledger = Ledger(path)
    assert ledger.rows() == {}
    ledger.add(replace(FOUND, minutes=9.0))
    ledger.add(FOUND)
    with path.open("a") as file:
        file.write('{"name": "cut')
    assert ledger.rows() == {"whole": FOUND}


def test_a_row_of_a_busy_machine_is_run_again_whatever_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ledger = Ledger(tmp_path / "rows.jsonl")
    ledger.add(replace(FOUND, core_share=0.2))
    made_up = {"known": MADE_UP_CLAIMS[:1], "find": lambda claim, folder: replace(FOUND, minutes=7.0)}
    words = ["--resume", str(tmp_path / "rows.jsonl")]
    assert command.main([*words, "--keep-busy"], **made_up) == 0
    assert ledger.rows()["whole"].minutes == FOUND.minutes
    assert "1 rows are of a busy machine" in capsys.readouterr().out
    assert command.main(words, **made_up) == 0
    assert ledger.rows()["whole"].minutes == 7.0
    assert "busy" not in capsys.readouterr().out


def test_what_the_machine_cannot_measure_now_is_tried_again_and_then_is_no_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def called(*words: str) -> "subprocess.CompletedProcess[str]":
        asked.append(words)
        return subprocess.CompletedProcess(words, 3, "", "onnxfarm: Another program measures on this machine.")

    ruling = ruled({"1.20.0": [100.0] * 8, "1.21.0": [130.0] * 8}, before="1.20.0", after="1.21.0")
    monkeypatch.setattr(finding, "_called", called)
    find = partial(finding.row_of, judge=lambda claim, model, inputs: (ruling, 1.0))
    monkeypatch.setattr(finding, "PAUSE_S", 0.0)
    path = tmp_path / "rows.jsonl"
    assert command.main(["--only", CLAIMS[0].name, "--resume", str(path)], find=find) == 0
    assert len(asked) == finding.TRIES
    assert Ledger(path).rows() == {}
    assert "not run: onnxfarm: Another program measures" in capsys.readouterr().err


def test_an_unknown_claim_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(SystemExit, match=r"There is no claim lnr; there are lrn, selu"):
        command.main(["--only", "lnr"])


def test_the_command_fails_on_an_alarm_and_on_too_few_finds(tmp_path: Path) -> None:
    def ended(*words: str) -> int:
        words = ("--resume", str(tmp_path / "rows.jsonl"), "--only", *words)
        return command.main(words, known=MADE_UP_CLAIMS, find=lambda claim, folder: MADE_UP[claim.name])

    assert ended("whole,gone,quiet,moved,own") == 0
    assert ended("alarm") == 1
    assert ended("whole,missed") == 1
    assert ended("whole,missed", "--least", "0.5") == 0
    assert ended("missed", "--minutes", "-1", "--least", "0") == 0


def test_the_page_says_what_the_recorded_rows_say() -> None:
    assert table.tables(CLAIMS, Ledger(RECORDED).rows()) in PAGE.read_text()

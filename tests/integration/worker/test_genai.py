"""onnxruntime-genai on a node: the tokens of the graph alone, its own settings laid over, and what it refuses."""

import json

import numpy as np

from farm.contract.cells import CellSpec, Runtime
from farm.contract.reports import EnginesReport, RoundReport, Sample
from farm.rules.runtimes.genai import CONFIG
from farm.workshop.samples import decoder, genai
from tests.bench.blocks import brief_windows
from tests.integration.worker.making import checks, of_kind

GENAI = "onnxruntime-genai==0.13.2+onnxruntime.1.29.0"
NEWER = "onnxruntime-genai==0.14.0+onnxruntime.1.29.0"


def work(scenario: str) -> dict[str, object]:
    return {"batch": 1, "scenario": scenario}


def samples_of(reports) -> dict[int, Sample]:
    (measured,) = of_kind(reports, RoundReport)
    assert all(place.sample is not None for place in measured.samples), measured
    return {place.arm: place.sample for place in measured.samples}


def test_128_greedy_tokens_are_those_of_the_graph_alone_in_both_spellings_of_attention(bench, inputs, tmp_path):
    plain, grouped = (
        genai.write_folder(tmp_path / name, make())
        for name, make in (("plain", decoder.make), ("grouped", decoder.make_gqa))
    )
    told = {"inputs": inputs, "workload": work("generate:prompt=32:new=128")}
    arms = [
        bench.arm(0, plain / genai.MAIN, runtime="onnxruntime==1.29.0", **told),
        bench.arm(1, plain / genai.MAIN, **told),
        bench.arm(2, plain / genai.MAIN, data=[plain / CONFIG], runtime=GENAI, **told),
        bench.arm(3, grouped / genai.MAIN, data=[grouped / CONFIG], runtime=GENAI, **told),
    ]
    with brief_windows():
        reports = bench.execute(arms)
    found = checks(reports)
    assert [one.reason for one in found.values()] == [None] * 4
    # the scores behind the prompt against those of a plain session beside it
    (scores,) = found[2].outputs
    assert scores.reference_shape == (1000,)
    assert scores.violations == 0
    samples = samples_of(reports)
    assert len(samples[0].tokens) == 128
    assert all(one.tokens == samples[0].tokens for one in samples.values())
    # and what was scored of a text that nobody chose
    assert samples[2].forced == samples[0].forced
    assert len(samples[2].gaps) == 128
    assert samples[2].metrics["tpot_ms"] == samples[2].p50_ms
    assert 0 < samples[2].metrics["outside_ms"] < samples[2].p50_ms


def test_tokens_are_drawn_by_the_seed_and_not_by_the_folders_own_settings(bench, inputs, tmp_path):
    folder = genai.write_folder(tmp_path / "folder", decoder.make())
    asked = [
        "sampling=top-p=0.9:temperature=4:seed=5",
        "sampling=top-p=0.9:seed=6",
        "sampling=top-k=40:temperature=8:seed=5",
        "seed=5",
    ]
    arms = [
        bench.arm(
            number,
            folder / genai.MAIN,
            data=[folder / CONFIG],
            inputs=inputs,
            runtime=GENAI,
            workload=work(f"generate:prompt=32:new=32:{one}"),
        )
        for number, one in enumerate(asked)
    ]
    with brief_windows():
        samples = samples_of(bench.execute(arms))
    assert len({one.tokens for one in samples.values()}) == 4
    # a generation begins with the seed again
    assert all(one.metrics["differing_answers"] == 0 for one in samples.values())


def test_two_releases_keep_scores_that_are_compared(bench, inputs, tmp_path):
    folder = genai.write_folder(tmp_path / "folder", decoder.make())
    arms = [
        bench.arm(
            number,
            folder / genai.MAIN,
            data=[folder / CONFIG],
            inputs=inputs,
            runtime=runtime,
            workload=work("generate:prompt=8:new=8"),
        )
        for number, runtime in enumerate((GENAI, NEWER))
    ]
    with brief_windows():
        reports = bench.execute(arms)
    (engines,) = of_kind(reports, EnginesReport)
    assert [(pair.one, pair.other, [o.violations for o in pair.outputs]) for pair in engines.pairs] == [(0, 1, [0])]


def test_a_configuration_that_the_library_does_not_read_is_refused_in_its_words(bench, inputs, tmp_path):
    folder = genai.write_folder(tmp_path / "folder", decoder.make())
    told = json.loads((folder / CONFIG).read_text())
    told["model"]["type"] = "nothing-known"
    (folder / CONFIG).write_text(json.dumps(told))
    arm = bench.arm(
        0,
        folder / genai.MAIN,
        data=[folder / CONFIG],
        inputs=inputs,
        runtime=GENAI,
        workload=work("generate:prompt=8:new=8"),
    )
    assert "nothing-known" in checks(bench.execute([arm]))[0].reason.text


def test_a_release_that_does_not_load_beside_an_old_runtime_is_refused_in_one_sentence(bench, inputs, tmp_path):
    folder = genai.write_folder(tmp_path / "folder", decoder.make())
    arm = bench.arm(
        0,
        folder / genai.MAIN,
        data=[folder / CONFIG],
        inputs=inputs,
        runtime="onnxruntime-genai==0.13.2+onnxruntime.1.17.3",
        workload=work("generate:prompt=8:new=8"),
    )
    assert isinstance(arm.cell, CellSpec)
    assert arm.cell.runtime == Runtime(distribution="onnxruntime-genai", version="0.13.2+onnxruntime.1.17.3")
    reason = checks(bench.execute([arm]))[0].reason
    assert reason.text.startswith("onnxruntime-genai==0.13.2+onnxruntime==1.17.3 could not be installed: ")
    assert reason.text.endswith("it may not load beside onnxruntime==1.17.3, so name another one")


def test_rows_of_a_batch_are_those_alone_and_those_of_the_graph(bench, inputs, tmp_path):
    folder = genai.write_folder(tmp_path / "folder", decoder.make())
    told = {"inputs": inputs, "workload": {"batch": 3, "scenario": "generate:prompt=16:new=16"}}
    arms = [
        bench.arm(0, folder / genai.MAIN, runtime="onnxruntime==1.29.0", **told),
        bench.arm(1, folder / genai.MAIN, data=[folder / CONFIG], runtime=GENAI, **told),
    ]
    with brief_windows():
        samples = samples_of(bench.execute(arms))
    assert samples[1].tokens == samples[0].tokens
    assert samples[1].metrics["differing_rows"] == 0


def test_a_prompt_of_the_token_for_padding_is_attended_to(bench, inputs, tmp_path):
    folder = genai.write_folder(tmp_path / "folder", decoder.make())
    with np.load(inputs) as held:
        arrays = dict(held)
    path = tmp_path / "padding.inputs.npz"
    np.savez(path, **{**arrays, "input_ids": np.zeros((1, 4), dtype=np.int64)})
    arm = bench.arm(
        0,
        folder / genai.MAIN,
        data=[folder / CONFIG],
        inputs=path,
        runtime=GENAI,
        workload=work("generate:prompt=8:new=8"),
    )
    (scores,) = checks(bench.execute([arm]))[0].outputs
    assert scores.violations == 0

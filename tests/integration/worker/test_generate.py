"""`generate` on runtimes of a node: greedy tokens are the same in two releases and in both spellings of attention."""

from pathlib import Path

from farm.contract.reports import RoundReport, Sample
from farm.workshop.samples import builders
from tests.bench.blocks import brief_windows
from tests.integration.worker.making import Workbench, checks, of_kind

GENERATE = {"batch": 1, "scenario": "generate:prompt=32:new=128"}


def test_128_tokens_are_the_same_in_two_releases_and_by_group_query_attention(
    bench: Workbench, inputs: Path, tmp_path: Path
) -> None:
    plain, grouped = (builders.write_model(name, tmp_path) for name in ("decoder", "decoder-gqa"))
    arms = [
        bench.arm(0, plain, inputs=inputs, runtime="onnxruntime==1.29.0", workload=GENERATE),
        bench.arm(1, plain, inputs=inputs, workload=GENERATE),
        bench.arm(2, grouped, inputs=inputs, workload=GENERATE),
    ]
    with brief_windows():
        reports = bench.execute(arms)
    assert [found.reason for found in checks(reports).values()] == [None] * 3
    (measured,) = of_kind(reports, RoundReport)
    samples = {place.arm: place.sample for place in measured.samples}
    first = samples[0]
    assert isinstance(first, Sample), measured
    assert len(first.tokens) == 128
    assert len(set(first.tokens)) > 20
    assert all(sample is not None and sample.tokens == first.tokens for sample in samples.values())
    assert all(sample.metrics["tpot_ms"] == sample.p50_ms for sample in samples.values() if sample is not None)

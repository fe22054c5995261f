"""Writes document.json: a bench document made up with a seed, for the tests of pages and figures. Nothing in it was
measured; its names and numbers only resemble a real run, with one of everything a page must be able to show.

usage: python -m tests.unit.dashboard.make_document
"""

import random
from math import exp
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from farm.contract import document as doc
from farm.contract import document_cells as doc_cells
from farm.contract import document_comparisons as doc_comparisons
from farm.contract.base import digest_json
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.rules.comparing.verdicts import judge_pairs

SEED = 20261120
ROUNDS = 8
MODEL = "a3" + "9f4c1e77d02b5586" * 3 + "9f4c1e77d02b55"
OLD, NEW = "onnxruntime==1.29.0", "onnxruntime==1.31.1"
CPU = "CPUExecutionProvider"
# made-up p50 in milliseconds by batch and precision, and how much slower the new release is there
WORKLOADS = {
    (1, "fp32"): (1.92, 1.24),
    (8, "fp32"): (15.4, 1.16),
    (1, "int8-dynamic"): (0.981, 1.31),
    (8, "int8-dynamic"): (7.72, 1.002),
}
OPERATORS = [
    ("/encoder/layers.{n}/self_attn/MatMul", "FusedMatMul", 210.0, 1.0),
    ("/encoder/layers.{n}/norm1/LayerNormalization", "SkipLayerNormalization", 38.0, 4.1),
    ("/encoder/layers.{n}/norm2/LayerNormalization", "SkipLayerNormalization", 37.0, 3.9),
    ("/encoder/layers.{n}/linear1/MatMul", "MatMul", 248.0, 1.01),
    ("/encoder/layers.{n}/linear2/MatMul", "MatMul", 251.0, 0.995),
    ("/encoder/layers.{n}/activation/Erf", "Gelu", 92.0, 0.97),
]


def samples(random_: random.Random, p50_ms: float, *, spread: float = 0.007, is_bimodal: bool = False) -> list[float]:
    """p50 of each made-up launch; when bimodal every third is a fifth slower."""
    return [
        round(p50_ms * exp(random_.gauss(0, spread)) * (1.2 if is_bimodal and place % 3 == 2 else 1.0), 6)
        for place in range(ROUNDS)
    ]


def operators(random_: random.Random, *, is_new: bool, scale: float) -> list[doc_cells.OperatorTime]:
    found = []
    for n in range(2):
        for name, op_type, time_us, factor in OPERATORS:
            time = time_us * scale * (factor if is_new else 1.0) * exp(random_.gauss(0, 0.01))
            covers = [name.format(n=n).rsplit("/", 1)[0] + "/Add"] if op_type.startswith("Skip") else []
            found.append(
                doc_cells.OperatorTime(
                    node=name.format(n=n), covers=covers, op_type=op_type, provider=CPU, time_us=round(time, 2)
                )
            )
    return found


def parity(*, max_abs: float = 4.2e-7, verdict: Any = "pass") -> doc_cells.Parity:
    output = doc_cells.ParityOutput(
        name="last_hidden_state",
        max_abs=max_abs,
        max_rel=max_abs * 40,
        rmse=max_abs / 5,
        cosine=1 - max_abs**2,
        violations=0 if verdict == "pass" else 811,
    )
    text = "Within tolerance." if verdict == "pass" else "811 elements of last_hidden_state lie beyond the tolerance."
    reference = "onnxruntime==1.31.1 CPU, no optimisations"
    return doc_cells.Parity(verdict=verdict, reference=reference, text=text, atol=1e-5, rtol=1e-4, outputs=[output])


def cell(number: int, **parts: Any) -> doc_cells.Cell:
    base: dict[str, Any] = {
        "id": f"b1-a{number}",
        "digest": digest_json([SEED, number]),
        "block": "1",
        "model": "encoder",
        "model_sha256": MODEL,
        "opset": 17,
        "provider": CPU,
        "threads": 1,
        "node": "bench-1",
        "status": CellStatus.DONE,
        "requested_providers": [CPU],
        "shapes": {"sequence": 64},
        "session": {"inter_op_threads": 1, "execution_mode": "sequential"},
        "packages": {"onnxruntime": parts["runtime"].partition("==")[2], "numpy": "2.4.6"},
    }
    return doc_cells.Cell(**(base | parts))


def measured(
    random_: random.Random, number: int, p50_ms: float, *, is_bimodal: bool = False, **parts: Any
) -> doc_cells.Cell:
    values = samples(random_, p50_ms, is_bimodal=is_bimodal)
    middle, half = median(values), 1.2 * stdev(values) / ROUNDS**0.5
    is_new = parts["runtime"] == NEW
    batch = parts["batch"]
    return cell(
        number,
        active_providers=[CPU],
        p50_ms=middle,
        p50_ci_ms=(middle - half, middle + half),
        mean_ms=fmean(values) * 1.01,
        std_ms=stdev(values),
        min_ms=min(values) * 0.97,
        max_ms=max(values) * 1.4,
        p90_ms=middle * 1.06,
        samples_ms=values,
        throughput=batch * 1000 / middle,
        session_ms=41.2 * exp(random_.gauss(0, 0.05)),
        first_ms=middle * 2.6,
        import_ms=118.0,
        peak_memory_bytes=int(96e6 + 1.5e6 * batch),
        is_stable=not is_bimodal,
        is_bimodal=is_bimodal,
        disturbed_samples=1 if is_bimodal else 0,
        is_repeatable=True,
        copies=0,
        parity=parity(max_abs=4.2e-7 if parts["precision"] == "fp32" else 3.1e-2),
        providers=[doc_cells.ProviderTime(name=CPU, nodes=46 if is_new else 48, time_share=1.0)],
        operators=operators(random_, is_new=is_new, scale=p50_ms / (1.92 * (1.24 if is_new else 1.0))),
        repeat_command=(
            f"onnxfarm bench encoder.onnx --ort {parts['runtime'].partition('==')[2]} --provider cpu "
            f"--batch {batch} --threads 1 --precision {parts['precision']} --budget quick"
        ),
        **parts,
    )


def comparison(baseline: doc_cells.Cell, candidate: doc_cells.Cell, *, axis: str) -> doc_comparisons.Comparison:
    judged = judge_pairs(list(zip(baseline.samples_ms, candidate.samples_ms, strict=True)))
    changes = []
    if axis == "runtime":
        whole = sum(b.time_us - a.time_us for a, b in zip(baseline.operators, candidate.operators, strict=True))
        for a, b in zip(baseline.operators, candidate.operators, strict=True):
            moved = b.time_us - a.time_us
            changes.append(
                doc_comparisons.OperatorChange(
                    node=a.node,
                    covers=a.covers,
                    op_type=b.op_type,
                    baseline_us=a.time_us,
                    candidate_us=b.time_us,
                    change_low_us=moved - 2.5,
                    change_high_us=moved + 2.5,
                    share=moved / whole,
                )
            )
    return doc_comparisons.Comparison(
        baseline=baseline.id,
        candidate=candidate.id,
        axis=axis,
        ratio=judged.ratio,
        ci_low=judged.ci_low,
        ci_high=judged.ci_high,
        ci_level=judged.ci_level,
        p=judged.p,
        verdict=judged.verdict,
        reason=judged.reason or None,
        rounds=judged.rounds_used,
        rounds_needed=judged.rounds_needed,
        margin=judged.margin,
        smallest_detectable=judged.smallest_detectable,
        traces=5 if changes else 0,
        operators=changes,
    )


def refused(number: int, **parts: Any) -> doc_cells.Cell:
    text = (
        "The build onnxruntime 1.31.1 has no OpenVINOExecutionProvider; the distribution onnxruntime-openvino has it. "
        "Write `runtime: onnxruntime-openvino==1.24.1`."
    )
    return cell(
        number,
        runtime=NEW,
        provider="OpenVINOExecutionProvider",
        requested_providers=["OpenVINOExecutionProvider"],
        status=CellStatus.REFUSED,
        reason=Reason(code=ReasonCode.PROVIDER_NOT_IN_BUILD, text=text),
        node=None,
        packages={},
        **parts,
    )


def build() -> doc.Document:
    random_ = random.Random(SEED)
    cells: list[doc_cells.Cell] = []
    comparisons: list[doc_comparisons.Comparison] = []
    for (batch, precision), (p50_ms, factor) in WORKLOADS.items():
        is_bimodal = (batch, precision) == (8, "int8-dynamic")
        parts = {"batch": batch, "precision": precision, "is_bimodal": is_bimodal}
        old = measured(random_, len(cells), p50_ms, runtime=OLD, **parts)
        new = measured(random_, len(cells) + 1, p50_ms * factor, runtime=NEW, **parts)
        cells += [old, new]
        comparisons.append(comparison(old, new, axis="runtime"))
    twin = measured(random_, len(cells), 1.92, runtime=OLD, batch=1, precision="fp32", twin_of="b1-a0")
    cells.append(twin)
    comparisons.append(comparison(cells[0], twin, axis="twin"))
    comparisons.append(comparison(cells[0], cells[2], axis="batch"))
    openvino = "OpenVINOExecutionProvider"
    mixed = measured(random_, len(cells), 2.6, runtime="onnxruntime-openvino==1.24.1", batch=1, precision="fp32")
    cells.append(
        mixed.model_copy(
            update={
                "provider": openvino,
                "requested_providers": [openvino],
                "active_providers": [openvino, CPU],
                "executed_precision": "bf16",
                "copies": 2,
                "parity": parity(max_abs=2.3e-2, verdict="fail"),
                "providers": [
                    doc_cells.ProviderTime(name=openvino, nodes=3, time_share=0.62),
                    doc_cells.ProviderTime(name=CPU, nodes=9, time_share=0.38),
                ],
            }
        )
    )
    cells.append(refused(len(cells), batch=1, precision="fp32"))
    crash = Reason(
        code=ReasonCode.CRASHED, text="The runner ended by signal 11 (SIGSEGV) while it created the session."
    )
    cells.append(
        cell(
            len(cells),
            runtime="onnxruntime-openvino==1.24.1",
            provider=openvino,
            batch=8,
            precision="fp32",
            requested_providers=[openvino],
            status=CellStatus.CRASHED,
            reason=crash,
        )
    )
    first = comparisons[0]
    percents = [f"{100 * ((value or 1.0) - 1):.0f}" for value in (first.ratio, first.ci_low, first.ci_high)]
    sentence = (
        f"ONNX Runtime 1.31.1 runs encoder {percents[0]} % slower than 1.29.0 on bench-1 "
        f"(batch 1, fp32; 95 % interval {percents[1]}–{percents[2]} %, {first.rounds} rounds). "
        "SkipLayerNormalization explains 98 % of it. 3 of 4 pairs of cells are slower."
    )
    return doc.Document(
        machine={
            "hostname": "bench-1",
            "os": "Linux",
            "arch": "x86_64",
            "cpu_model": "Example CPU",
            "logical_cores": 2,
            "memory_bytes": 24_000_000_000,
            "governor": None,
            "sandbox": "landlock",
        },
        seed=SEED,
        created_at="2026-11-20T11:48:00Z",
        command="made up by tests/unit/dashboard/make_document.py",
        sentence=sentence,
        cells=cells,
        comparisons=comparisons,
    )


if __name__ == "__main__":
    Path(__file__).with_name("document.json").write_text(build().to_json() + "\n")

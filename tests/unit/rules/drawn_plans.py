"""Seeded matrices, models and fleets of every kind, for tests that hold for any plan."""

from random import Random
from typing import Any

from farm.rules.planning.plans import NodeOffer
from farm.rules.runtimes.models import (
    CompiledFacts,
    ContextFacts,
    GenaiFacts,
    ModelFacts,
    ModelInput,
    PromptFacts,
    SourceFacts,
)

RUNTIMES = (
    *("1.14.1", "1.16.3", "1.20.1", "1.29.0", "1.31.1", "1.32.0", "1.31.9"),
    *("onnxruntime-openvino==1.24.1", "onnxruntime-web==1.31.0", "torch==2.12.0", "onnxruntime-genai==0.14.0"),
)
SESSIONS = (
    "default",
    {"name": "quiet", "spinning": False},
    {"name": "wide", "execution-mode": "parallel", "inter-op-threads": 4},
    {"name": "bare", "arena": False, "config": {"session.intra_op_thread_affinities": "1;2"}},
)
VALUES: dict[str, tuple[Any, ...]] = {
    "opset": ("as-is", "max-of-runtime", 15, 17, 21, 27),
    "runtime": RUNTIMES,
    "provider": ("cpu", "openvino", {"name": "openvino", "options": {"device_type": "GPU"}}, "qnn", "wasm", "cuda"),
    "batch": (1, 2, 3, 8, 64, 1, 2),
    "shapes": ({"sequence": 16}, {"sequence": 64}, {"sequence": 16, "hidden": 256}, {"breadth": 3}, {"N": 4}),
    "precision": ("fp32", "fp16", "int8-dynamic", "int8-qdq", "int8-qdq:per-channel", "int4", "int8-qoperator"),
    "threads": (1, 2, 4, 16, 1),
    "session": SESSIONS,
    "optimization": ("disable", "basic", "all"),
    "policy": ("none", "prefer-npu"),
    "memory-limit-mb": ("none", 512),
    "call": ("bound", "run"),
    "hardware": ("cpu", "x86", "gpu", "cpu|gpu", "cpu+arm", "node:n1", "node:2", "npu"),
    "concurrency": (1, 2, 4),
    "scenario": (
        *("single", "fresh", "fresh:sequence=16+64", "load:rate=50", "load:bound=20ms", "load:closed=4"),
        *("sustained:2", "generate", "generate:prompt=16:new=8"),
    ),
}


def draw_matrix(dice: Random) -> dict[str, Any]:
    """A matrix as a file has it; one in three or so is refused when it is read."""
    axes = dice.sample(sorted(VALUES), dice.randint(0, 4))
    declared: dict[str, Any] = {axis: dice.choices(VALUES[axis], k=dice.randint(1, 4)) for axis in axes}
    matrix = dict(declared)
    if declared and dice.random() < 0.4:
        matrix["exclude"] = [
            {axis: dice.choice(declared[axis]) for axis in dice.sample(axes, dice.randint(1, len(axes)))}
            for _ in range(dice.randint(1, 3))
        ]
    if not declared or dice.random() < 0.5:
        matrix["include"] = [
            {axis: dice.choice(VALUES[axis]) for axis in dice.sample(sorted(VALUES), dice.randint(1, 3))}
            for _ in range(dice.randint(1, 4))
        ]
    settings: dict[str, Any] = {"budget": dice.choice(("glance", "quick", "standard", "precise")), "matrix": matrix}
    for key, value in (
        ("operators", True),
        ("wish", "3%"),
        ("inputs", {"x": "0..1"}),
        ("max-parallel", 2),
        ("pre", True),
    ):
        if dice.random() < 0.2:
            settings[key] = value
    return settings


def draw_model(dice: Random) -> ModelFacts:
    """A model as inspection describes one, with any of what may come with it."""

    def perhaps(value: Any, share: float = 0.2) -> Any:
        return value if dice.random() < share else None

    return ModelFacts(
        bundle_sha256="a" * 64,
        main_sha256="b" * 64,
        opsets={"": dice.choice((13, 17, 21)), **({"ai.onnx.ml": 3} if dice.random() < 0.2 else {})},
        unused_opsets=("ai.onnx.ml",),
        ir_version=dice.choice((8, 10, 13)),
        custom_domains=perhaps(("own",), 0.05) or (),
        batch=dice.choice(("N", "N", 1, None)),
        dims={"sequence": None, "hidden": 256},
        sizes=dice.choice(({}, {"sequence": 16}, {"sequence": 64, "N": 2})),
        is_quantised=dice.random() < 0.1,
        inputs_sha256=perhaps("c" * 64),
        inputs_batch=perhaps(2),
        inputs=dice.choice(((), (ModelInput(name="x", dtype="float32", shape=("N", "sequence"), fill="0..1"),))),
        inputs_problem=perhaps("Nothing that was tried runs.", 0.05) or "",
        generation_problem=perhaps("It does not generate.", 0.3) or "",
        calibration_sha256=perhaps("d" * 64),
        calibration_problem=perhaps("They do not fit.", 0.1) or "",
        latency_ms=perhaps(dice.choice((0.5, 30.0, 900.0)), 0.5),
        quickest_ms=perhaps(0.4),
        source=perhaps(SourceFacts(name="m.pt2", saved_by="2.9.0"), 0.4),
        genai=perhaps(GenaiFacts(type="llama", vocabulary=100, context=64, has_tokenizer=True), 0.4),
        compiled=perhaps(CompiledFacts(by=("QNNExecutionProvider",)), 0.1),
        prompts=perhaps(PromptFacts(sha256="e" * 64, rows=dice.choice((1, 2)), tokens=16)),
        context=perhaps(ContextFacts(tokens=32, where="a table")),
        is_grouped=dice.random() < 0.2,
        unbound=perhaps("the output y is a sequence", 0.2) or "",
    )


def draw_fleet(dice: Random) -> list[NodeOffer] | None:
    """Nodes of several kinds; None where no fleet is asked."""
    if dice.random() < 0.25:
        return None
    return [draw_node(dice, number) for number in range(dice.randint(0, 5))]


def draw_node(dice: Random, number: int) -> NodeOffer:
    """One node."""
    is_browser = dice.random() < 0.15
    return NodeOffer(
        id=str(number),
        name=f"n{number}",
        tags=frozenset({"cpu", *dice.sample(("x86", "arm", "gpu", "openvino", "npu", "avx512-vnni"), 2)}),
        providers=frozenset(dice.sample(("OpenVINOExecutionProvider", "CUDAExecutionProvider"), 1)),
        distributions=frozenset(dice.choice(((), ("onnxruntime",)))),
        versions=frozenset(dice.choice(((), ("onnxruntime==1.31.9",)))),
        max_arms=dice.choice((4, 16)),
        cores=dice.choice((None, 2, 8)),
        is_browser=is_browser,
        noise=dice.choice((None, 0.005, 0.02)),
        margin=dice.choice((0.02, 0.05)),
        blocks_since_pair=dice.choice((None, 0, 5)),
        is_first_day=dice.random() < 0.2,
    )

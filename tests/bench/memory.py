"""Memory on real releases of ONNX Runtime: what changed is found by its release, and what did not is not flagged.

    python -m tests.bench.memory --seed 1 --home DIR [--part pairs,bisect,limit,nchwc,controls]

A grouped 2-D Conv whose channels no blocked kernel takes has a scratch buffer a thread: from 1.23.2 on each holds
the whole image unrolled, until 1.27.0. Prints a line of JSON a part; with --strict, what is missed ends it with 1.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.options import read_options

RELEASES = "1.23.1,1.23.2,1.24.4,1.25.1,1.26.0,1.27.0,1.29.0,1.31.1"
LIMIT_MB = 1024
CONTROLS = 12
SPACE, RESIDENT = "peak_address_space_bytes", "peak_memory_bytes"
MIB = 1 << 20


def conv(path: Path, *, channels: int, groups: int, side: int, kernel: int, seed: int) -> Path:
    """A model of one Conv, `channels` in and out, on a square image."""
    shape = (channels, channels // groups, kernel, kernel)
    weights = np.random.default_rng(seed).normal(0.0, 0.05, shape).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=groups, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4)
    image = [1, channels, side, side]
    graph = helper.make_graph(
        [node],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, image)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, image)],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def grouped(folder: Path, seed: int, *, side: int = 448) -> Path:
    """5 channels a group, which is no multiple of 8: no blocked kernel takes it."""
    return conv(folder / "grouped.onnx", channels=10, groups=2, side=side, kernel=7, seed=seed)


def asked(*words: object, home: Path) -> dict[str, Any]:
    """The document of a command of onnxfarm. Its exit code says what it found, which the document says too."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "document.json"
        command = [sys.executable, "-m", "onnxfarm.main", *map(str, words), "--home", str(home), "--json", str(file)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        if not file.is_file():
            raise RuntimeError(f"{' '.join(command)} wrote no document: {ended.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found


def memory_of(document: Mapping[str, Any]) -> list[dict[str, object]]:
    """The verdicts on memory of a document's comparisons, in MiB."""
    runtimes = {cell["id"]: cell["runtime"].partition("==")[2] for cell in document["cells"]}
    return [
        {
            "from": runtimes[one["baseline"]],
            "to": runtimes[one["candidate"]],
            "metric": change["name"],
            "verdict": change["verdict"],
            "mib": [round(change[side] / MIB, 1) for side in ("baseline", "candidate")],
            "rounds": change["rounds"],
        }
        for one in document["comparisons"]
        for change in one.get("metrics", [])
        if change["name"] in (SPACE, RESIDENT)
    ]


def paired(model: Path, old: str, new: str, *, home: Path, threads: int = 2) -> list[dict[str, object]]:
    """Two releases, eight rounds, and what a gate sees of their memory."""
    words = ("gate", model, "--baseline", old, "--candidate", new, "--rounds", 8, "--no-confirm", "--threads", threads)
    return memory_of(asked(*words, "--fail-on", "bigger", home=home))


def pairs(folder: Path, *, home: Path, seed: int) -> object:
    model = grouped(folder, seed)
    return [paired(model, *sides, home=home) for sides in (("1.23.1", "1.23.2"), ("1.26.0", "1.27.0"))]


def bisect(folder: Path, *, home: Path, seed: int) -> object:
    model, told = grouped(folder, seed), []
    for good, bad in (("1.23.1", "1.26.0"), ("1.26.0", "1.31.1")):
        words = ("bisect", model, "--good", good, "--bad", bad, "--for", "memory", "--threads", 2)
        found = asked(*words, home=home)
        told.append({name: found[name] for name in ("sentence", "first_bad", "last_good", "kind", "change", "minutes")})
    return told


def limit(folder: Path, *, home: Path, seed: int) -> object:
    # a larger image, whose buffers pass the limit
    words = ("bench", grouped(folder, seed, side=672), "--ort", "1.23.1,1.26.0,1.27.0", "--threads", 2)
    found = asked(*words, "--memory-limit-mb", LIMIT_MB, home=home)
    return [
        {"runtime": cell["runtime"], "status": cell["status"], "text": (cell["reason"] or {}).get("text", "")}
        for cell in found["cells"]
    ]


def nchwc(folder: Path, *, home: Path, seed: int) -> object:
    model = conv(folder / "nchwc.onnx", channels=16, groups=1, side=224, kernel=3, seed=seed)
    told = memory_of(asked("bench", model, "--ort", RELEASES, "--threads", 2, home=home))
    return {
        "comparisons": len(told),
        "not equal": [one for one in told if one["verdict"] != "equal"],
        "address space, MiB": sorted({size for one in told if one["metric"] == SPACE for size in one["mib"]}),  # type: ignore[attr-defined]
    }


def controls(folder: Path, *, home: Path, seed: int) -> object:
    """Models that the change does not touch, over the release that has it: blocked kernels, or one group in small."""
    dice, told = np.random.default_rng(seed), []
    for number in range(CONTROLS):
        channels, side, kernel = (int(dice.choice(some)) for some in ([16, 32], [32, 64, 112], [1, 3, 5]))
        model = conv(folder / f"{number}.onnx", channels=channels, groups=1, side=side, kernel=kernel, seed=number)
        told.append(paired(model, *(("1.23.1", "1.23.2"), ("1.26.0", "1.27.0"))[number % 2], home=home))
    flagged = [one for some in told for one in some if one["verdict"] != "equal"]
    return {"controls": len(told), "judged": sum(bool(some) for some in told), "flagged": flagged}


PARTS: Mapping[str, Callable[..., object]] = {
    "pairs": pairs, "bisect": bisect, "limit": limit, "nchwc": nchwc, "controls": controls,
}  # fmt: skip


def missed(part: str, found: Any) -> list[str]:
    """What is not as it should be, in sentences."""
    if part == "pairs":
        words = [one["verdict"] for pair in found for one in pair if one["metric"] == SPACE]
        return [] if words == ["bigger", "smaller"] else [f"The address space is {words}, not bigger and smaller."]
    if part == "bisect":
        releases = [one["first_bad"] for one in found]
        return [] if releases == ["1.23.2", "1.27.0"] else [f"{releases} were found, not 1.23.2 and 1.27.0."]
    if part == "limit":
        states = [one["status"] for one in found]
        named = f"memory limit of {LIMIT_MB:,} MiB" in found[1]["text"]
        return [] if states == ["done", "failed", "done"] and named else [f"Under the limit cells are {found}."]
    flagged = found["flagged"] if part == "controls" else found["not equal"]
    is_whole = found["judged"] == CONTROLS if part == "controls" else found["comparisons"] > 0
    return [] if is_whole and not flagged else [f"Of {part}, {found} was not judged equal."]


def main() -> None:
    given = read_options(
        __doc__, required=("home",), seed=1, home=Path, strict=False, part="pairs,limit,bisect,controls,nchwc"
    )
    with tempfile.TemporaryDirectory() as folder:
        for part in given.part.split(","):
            told = PARTS[part](Path(folder), home=given.home, seed=given.seed)
            print(json.dumps({"part": part, "seed": given.seed, "found": told}), flush=True)
            if given.strict and (sentences := missed(part, told)):
                raise SystemExit(" ".join(sentences))


if __name__ == "__main__":
    main()

"""How much faster is ONNX Runtime than PyTorch eager on BERT-base's shape, paired in one block?

    python -m tests.bench.pytorch --seed 1 --home DIR [--layers 12] [--with-compile]

The model is written twice from one set of random weights (seeded): PyTorch's own modules exported as a program of
torch.export (scaled_dot_product_attention, LayerNorm, exact GELU), and the same module exported by PyTorch's own
exporter of ONNX. Both are measured by `onnxfarm bench` on two threads, batch 1, sequence 128: the product's own path,
sandbox and verdicts. PyTorch is installed from the package index; uv's UV_FIND_LINKS or UV_INDEX may name another.
"""

import argparse
import json
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from farm.contract.document import Document
from farm.rules.cells.readers import read_runtime
from onnxfarm.main import app
from tests.bench import figure
from tests.options import read_options
from worker.agent.installation.runtimes import RuntimeStore

EAGER, COMPILED, PLAIN = "torch==2.13.0", "torch==2.13.0+compile", "1.31.1"
EXPORT = """
import sys, torch
from torch import nn
from torch.nn import functional as F
target, layers, seed, packages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
HIDDEN, HEADS, INNER, WORDS, LENGTH = 768, 12, 3072, 30522, 128
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.up, self.down = nn.Linear(HIDDEN, INNER), nn.Linear(INNER, HIDDEN)
        self.first, self.second = nn.LayerNorm(HIDDEN, eps=1e-12), nn.LayerNorm(HIDDEN, eps=1e-12)
    def forward(self, x):
        split = lambda one: one.view(1, LENGTH, HEADS, HIDDEN // HEADS).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(split(self.query(x)), split(self.key(x)), split(self.value(x)))
        x = self.first(x + self.out(mixed.transpose(1, 2).reshape(1, LENGTH, HIDDEN)))
        return self.second(x + self.down(F.gelu(self.up(x))))
class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, HIDDEN), nn.Embedding(LENGTH, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.register_buffer("order", torch.arange(LENGTH))
    def forward(self, ids):
        x = self.norm(self.words(ids) + self.places(self.order))
        for layer in self.layers:
            x = layer(x)
        return x
torch.manual_seed(seed)
model, ids = Bert().eval(), torch.randint(0, WORDS, (1, LENGTH))
torch.export.save(torch.export.export(model, (ids,)), target + "/model.pt2")
# the exporter wants the package onnx, which the runtime's environment has not got
sys.path.append(packages)
names = {"input_names": ["ids"], "output_names": ["hidden"]}
with torch.no_grad():
    torch.onnx.export(model, (ids,), target + "/model.onnx", opset_version=17, dynamo=False, **names)
"""


def main() -> None:
    given = read_options(
        __doc__, required=("home",), seed=1, home=Path, layers=12, threads=2, budget="standard", with_compile=False
    )
    with tempfile.TemporaryDirectory(prefix="onnxfarm-bert-") as name:
        figure.publish(claim="ONNX Runtime against PyTorch", seed=given.seed, figures=measured(Path(name), given))


def measured(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """The comparisons of the block, as ratios with their intervals, and what each cell took."""
    home: Path = given.home.resolve()
    python = RuntimeStore(home / "runtimes", say=print).provide(read_runtime(EAGER)).python
    words = [str(python), "-c", EXPORT, str(folder), str(given.layers), str(given.seed)]
    subprocess.run([*words, sysconfig.get_paths()["purelib"]], check=True, timeout=900)
    runtimes = ",".join([EAGER, *([COMPILED] if given.with_compile else []), PLAIN])
    command = ["bench", folder / "model.onnx", "--source", folder / "model.pt2", "--ort", runtimes]
    command += [
        "--budget",
        given.budget,
        "--threads",
        given.threads,
        "--seed",
        given.seed,
        "--home",
        home,
        "--json",
        folder / "out.json",
    ]
    result = CliRunner().invoke(app, [str(word) for word in command])
    print(result.output)
    if result.exit_code != 0:
        raise SystemExit(result.exit_code)
    return figures(Document.model_validate(json.loads((folder / "out.json").read_text())))


def figures(document: Document) -> dict[str, Any]:
    """What is published of a document."""
    cells = {cell.id: cell for cell in document.cells}
    return {
        "cells": {
            cell.runtime: {
                "p50_ms": cell.p50_ms,
                "parity": cell.parity.verdict,
                "peak_memory_bytes": cell.peak_memory_bytes,
                "torch": cell.packages.get("torch"),
            }
            for cell in document.cells
        },
        "comparisons": [
            {
                "from": cells[one.baseline].runtime,
                "to": cells[one.candidate].runtime,
                "verdict": one.verdict,
                "ratio": one.ratio,
                "interval": [one.ci_low, one.ci_high],
                "rounds": one.rounds,
                "by": one.verdict_from,
            }
            for one in document.comparisons
        ],
    }


if __name__ == "__main__":
    main()

"""Writes the models of a set by the exporters that are installed, each module in a process.

    python -m venv DIR && DIR/bin/pip install -r tests/bench/exported/requirements.txt
    DIR/bin/python -m tests.bench.exported.build OUT [--set SET] [--only PREFIX]

The exporters are none of the product's requirements. tf2onnx wants an older numpy and protobuf, and so an environment
of its own, with requirements-keras.txt, as jax2onnx does with requirements-jax.txt: run it there with the same OUT.
catboost==1.2.10 and onnx want one too, for `build_stranger3_catboost`.
"""

import argparse
import importlib
import multiprocessing
import sys
import traceback
from pathlib import Path

MODULES = {
    "wanted": ("build_graphs", "build_torch", "build_tables", "build_hub", "build_keras"),
    "stranger": (
        "build_stranger",
        "build_stranger_hub",
        "build_stranger_tables",
        "build_stranger_keras",
        "build_stranger_jax",
    ),
    "stranger2": (
        "build_stranger2",
        "build_stranger2_hub",
        "build_stranger2_tables",
        "build_stranger2_keras",
        "build_stranger2_jax",
    ),
    "stranger3": (
        "build_stranger3",
        "build_stranger3_hub",
        "build_stranger3_tables",
        "build_stranger3_catboost",
        "build_stranger3_keras",
        "build_stranger3_jax",
    ),
}


def write(module: str, out: Path, prefix: str) -> None:
    """Every model of one module that is not there yet; what an exporter cannot write is said, and left out."""
    try:
        builders = importlib.import_module(f"tests.bench.exported.{module}").BUILDERS
    except ImportError as missing:
        print(f"{module}: not installed here ({missing})")
        return
    for name, build in builders.items():
        path = out / name / "model.onnx"
        if path.exists() or not name.startswith(prefix):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            build(path)
            print(f"{name}: {path.stat().st_size:,} bytes", flush=True)
        except Exception:
            print(f"{name}: not written", traceback.format_exc(limit=-2), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--set", choices=MODULES, default="wanted")
    parser.add_argument("--only", default="", metavar="PREFIX")
    read = parser.parse_args()
    for module in MODULES[read.set]:
        child = multiprocessing.get_context("spawn").Process(target=write, args=(module, read.out, read.only))
        child.start()
        child.join()
        if child.exitcode:
            sys.exit(f"{module} ended with {child.exitcode}")


if __name__ == "__main__":
    main()

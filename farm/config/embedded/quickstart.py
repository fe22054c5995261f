"""One command from a model to measured cells: starts a farm on this machine, sends a matrix through it, shows it.

`bash deploy/quickstart [MODEL.onnx | --sample NAME] [--matrix FILE] [--shape NAME=SIZE] [--input NAME=VALUE]
[--inputs NPZ] [--once] [--json FILE] [--port N]`
"""

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from farm.config.embedded.foreground import keep_running, print_addresses, run_farm
from farm.config.embedded.plan import ROOT, lock_home, make_plan
from farm.config.embedded.processes import EmbeddedFarm, Opened

CLIENT = "onnxfarm.main"
SAMPLES = "farm.workshop.samples"
DEFAULT_SAMPLE = "transformer"
# the data and the matrix that a sample comes with, beyond its .onnx
SAMPLE_NAMES = ("transformer", "convnet", "digits", "decoder", "decoder-gqa")
SAMPLE_DATA = {"digits": ("evaluation", "calibration")}
_EXAMPLES = ROOT / "docs" / "examples"
SAMPLE_MATRICES = {
    "digits": _EXAMPLES / "digits.yaml",
    "decoder": _EXAMPLES / "decoder.yaml",
    "decoder-gqa": _EXAMPLES / "decoder.yaml",
}


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_options(argv)
    return run_farm(lambda: _run(options), status_if_stopped=130 if options.once else 0)


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line, `sys.argv` where it is None.

    Exits with status 2 for a file that does not exist, a wrong port, or options that exclude each other.
    """
    parser = argparse.ArgumentParser(prog="deploy/quickstart", description=__doc__.split("\n")[0])
    parser.add_argument(
        "model", nargs="?", type=Path, help="an .onnx file or a .zip of one with its data files (default: --sample)"
    )
    parser.add_argument(
        "--sample",
        choices=SAMPLE_NAMES,
        help=f"a model that comes with the farm; digits: with labels; decoder: with past (default: {DEFAULT_SAMPLE})",
    )
    parser.add_argument("--matrix", type=Path, help="a matrix file (default: 1.29.0 beside 1.31.1)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=SIZE", help="a dynamic dimension; repeat")
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=VALUE|LOW..HIGH", help="how one input is made; repeat"
    )
    parser.add_argument("--inputs", type=Path, metavar="NPZ", help="inputs by name; made from the seed without")
    parser.add_argument("--once", action="store_true", help="end when the run has ended; 0 when every cell finished")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the run's document to FILE as JSON; - is stdout"
    )
    parser.add_argument("--port", type=int, default=8000, metavar="N", help="port of the pages (default: 8000)")
    options = parser.parse_args(argv)
    for path in (options.model, options.matrix, options.inputs):
        if path is not None and not path.is_file():
            parser.error(f"{path} is not a file.")
    if options.model is not None and options.sample is not None:
        parser.error("give a model or --sample, not both.")
    if not 1 <= options.port <= 65_535:
        parser.error(f"--port takes 1 to 65535, not {options.port}.")
    return options


def _run(options: argparse.Namespace) -> int:
    home = Path(os.environ.get("ONNXFARM_HOME") or ROOT / "var")
    plan = make_plan(home=home, port=options.port)
    with lock_home(plan.home), EmbeddedFarm(plan) as farm:
        samples = plan.home / "samples"
        making = farm.supervisor.start("samples", [sys.executable, "-m", SAMPLES, str(samples)], ends_by_itself=True)
        opened = farm.start(report=_print, on_pages=_print_pages)
        farm.supervisor.wait_until_done(making, timeout_s=60)
        print_addresses(farm, opened)
        if opened.has_runs and not is_run_wanted(options):
            _print("No sample is measured, as the farm has runs: name a model, or one with --sample, to measure it.")
            keep_running(farm, opened)
        beside = _choose_sample(options, samples)
        status = _submit(farm, opened, options, beside=beside)
        if options.once:
            return status
        keep_running(farm, opened)
    return 0


def is_run_wanted(options: argparse.Namespace) -> bool:
    """Say whether the command line names anything to measure, not only how to start the farm."""
    return any((options.model, options.sample, options.matrix, options.once, options.json))


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print_pages(opened: Opened) -> None:
    _print(f"The pages are up at {opened.url}. Sign in, once, with {opened.link}")


def _choose_sample(options: argparse.Namespace, samples: Path) -> list[str]:
    """Set `options.model`, and `options.matrix` for a sample that has one; return the options that name its data."""
    if options.model is not None:
        return []
    name = options.sample or DEFAULT_SAMPLE
    options.model = samples / f"{name}.onnx"
    options.matrix = options.matrix or SAMPLE_MATRICES.get(name)
    return [word for part in SAMPLE_DATA.get(name, ()) for word in (f"--{part}", str(samples / f"{name}.{part}.npz"))]


def _submit(farm: EmbeddedFarm, opened: Opened, options: argparse.Namespace, *, beside: Sequence[str] = ()) -> int:
    """Run `onnxfarm submit` on this terminal, as a user would type it, and return its exit status."""
    url = farm.plan.pages_url if farm.plan.pages_url.startswith("https://") else farm.plan.url
    argv = [sys.executable, "-m", CLIENT, "submit", str(options.model), "--server", url, "--wait"]
    argv += beside
    argv += ["--matrix", str(options.matrix)] if options.matrix else []
    argv += [word for name in ("shape", "input") for value in getattr(options, name) for word in (f"--{name}", value)]
    argv += ["--inputs", str(options.inputs)] if options.inputs else []
    argv += ["--json", str(options.json)] if options.json else []
    front = farm.supervisor.start_in_foreground(argv, environment={"ONNXFARM_TOKEN": opened.token})
    while front.is_running:
        farm.supervisor.raise_if_ended(except_for=front)
        with contextlib.suppress(subprocess.TimeoutExpired):
            front.handle.wait(1.0)
    return farm.supervisor.wait_in_foreground(front)


if __name__ == "__main__":
    sys.exit(main())

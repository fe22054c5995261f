"""Starts a farm on this machine, measures a model on it, and shows the results, all by one command.

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
SAMPLE_NAMES = ("transformer", "convnet", "digits", "decoder", "decoder-gqa")
# the data and the matrix that come with a sample
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
    """Parse the command line. `argv` None: that of this process.

    Exits with status 2 for a file that does not exist, a wrong port, or a model together with --sample.
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
        data_options = _choose_sample(options, samples)
        status = _submit(farm, opened, options, data_options=data_options)
        if options.once:
            return status
        keep_running(farm, opened)


def is_run_wanted(options: argparse.Namespace) -> bool:
    """Say whether the command line asks for a measurement: by a model, --sample, --matrix, --once or --json.

    Options for data, such as --shape and --inputs, do not count.
    """
    return any((options.model, options.sample, options.matrix, options.once, options.json))


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print_pages(opened: Opened) -> None:
    _print(f"The pages are up at {opened.url}. Sign in, once, with {opened.link}")


def _choose_sample(options: argparse.Namespace, samples: Path) -> list[str]:
    """Set `options.model` and `options.matrix` to a sample, unless a model is given. Return options for its data."""
    if options.model is not None:
        return []
    name = options.sample or DEFAULT_SAMPLE
    options.model = samples / f"{name}.onnx"
    options.matrix = options.matrix or SAMPLE_MATRICES.get(name)
    return [f"--{part}={samples / f'{name}.{part}.npz'}" for part in SAMPLE_DATA.get(name, ())]


def _submit(farm: EmbeddedFarm, opened: Opened, options: argparse.Namespace, *, data_options: Sequence[str]) -> int:
    """Run `onnxfarm submit` in this terminal, as a user would, and return its exit status."""
    url = farm.plan.pages_url if farm.plan.pages_url.startswith("https://") else farm.plan.url
    argv = [sys.executable, "-m", CLIENT, "submit", str(options.model), "--server", url, "--wait"]
    argv += data_options
    for name in ("matrix", "inputs", "json"):
        if value := getattr(options, name):
            argv.append(f"--{name}={value}")
    for name in ("shape", "input"):
        argv += [f"--{name}={value}" for value in getattr(options, name)]
    client = farm.supervisor.start_in_foreground(argv, environment={"ONNXFARM_TOKEN": opened.token})
    while client.is_running:
        farm.supervisor.raise_if_ended(except_for=client)
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.handle.wait(1.0)
    return farm.supervisor.wait_in_foreground(client)


if __name__ == "__main__":
    sys.exit(main())

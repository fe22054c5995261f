"""Runs a farm on this machine: `onnxfarm serve`, or `python -m farm.config.embedded.serve`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from farm.config.embedded.foreground import keep_running, print_addresses, run_farm
from farm.config.embedded.plan import lock_home, make_plan
from farm.config.embedded.processes import EmbeddedFarm
from farm.config.embedded.tls import add_tls


def main(argv: Sequence[str] | None = None) -> int:
    """Run the farm until Ctrl-C or a signal. Return the exit status of the command."""
    parser = argparse.ArgumentParser(prog="onnxfarm serve", description=__doc__.split("\n")[0])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--no-node", action="store_true")
    parser.add_argument("--tls-cert", type=Path)
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--tls-port", type=int, default=8443)
    options = parser.parse_args(argv)
    return run_farm(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    plan = make_plan(home=options.home, port=options.port, with_node=not options.no_node)
    if options.tls_cert is not None:
        plan = add_tls(plan, cert=options.tls_cert, key=options.tls_key, port=options.tls_port)
    with lock_home(plan.home), EmbeddedFarm(plan) as farm:
        opened = farm.start()
        print_addresses(farm, opened)
        keep_running(farm, opened)


if __name__ == "__main__":
    sys.exit(main())

"""Writes the sample models and their data: `python -m farm.workshop.samples OUT_DIR`."""

import argparse
import sys
from pathlib import Path

from farm.workshop.samples import builders


def main() -> int:
    """Write the sample models and their data, print the paths, and return the exit code."""
    parser = argparse.ArgumentParser("python -m farm.workshop.samples", description="Write the sample models.")
    parser.add_argument(
        "folder", metavar="OUT_DIR", type=Path, help="the folder to write to; it is created if it does not exist"
    )
    for path in builders.write_all(parser.parse_args().folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())

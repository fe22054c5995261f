"""Writes the sample models and their data: `python -m farm.workshop.samples OUT_DIR`."""

import sys
from pathlib import Path

from farm.workshop.samples import builders


def main() -> int:
    """Write them, print their paths, and return the exit code: 0, or 2 where no folder was named."""
    if len(sys.argv) != 2:
        print("usage: python -m farm.workshop.samples OUT_DIR", file=sys.stderr)
        return 2
    for path in builders.write_all(Path(sys.argv[1])):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())

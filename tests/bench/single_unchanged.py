"""Whether `single` is what it was before a cell had a scenario: its documents byte by byte, and its p50.

The tree of an older commit measures one block of the reference CNN and writes its document. Today's tree is given the
same reports; its document without the keys that were added since has to be the same text. Then both trees' bench
measure one cell, by turns; what their times are apart is held against what blocks of one tree are:

    python -m tests.bench.single_unchanged --before 05304aa8 --seed 1
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from farm.contract.document_cells import CellMetric, Figure
from tests.bench import figure
from tests.bench.blocks import REFERENCE_MODELS

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("single_documents.py")
MARGIN = 0.02
SEVERAL = ("--ort", "1.29.0,1.31.1", "--batch", "1,4")
ONE = ("--ort", "1.31.1", "--batch", "4")
TIMES = ("p50_ms", "cpu_p50_ms")
# figures of the moment at which a document is written
OF_THE_MOMENT = ("created_at",)


@contextlib.contextmanager
def tree_of(commit: str, folder: Path) -> Iterator[Path]:
    """The files of a commit."""
    tree = folder / "before"
    subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "-q", "--detach", str(tree), commit], check=True)
    try:
        yield tree
    finally:
        subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=True)


def document(tree: Path, mode: str, kept: Path, *, seed: int, words: tuple[str, ...] = SEVERAL) -> dict[str, Any]:
    """The document that this tree's bench writes of its own reports, or of those that were kept."""
    # the command is part of it
    written = kept.with_suffix(".document.json")
    written.unlink(missing_ok=True)
    asked = [str(REFERENCE_MODELS / "cnn_dyn.onnx"), *words, "--threads", "1"]
    line = [sys.executable, str(CHILD), mode, str(kept), *asked, "--budget", "quick", "--seed", str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [*line, "--json", str(written)], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if not written.exists():
        raise SystemExit(f"bench of {tree} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(written.read_text())
    return {name: value for name, value in found.items() if name not in OF_THE_MOMENT}


def without_added(new: Any, old: Any, *, place: str, added: set[str]) -> Any:
    """The new one without the keys that the old one does not have, which are put into `added`."""
    if isinstance(new, dict) and isinstance(old, dict):
        added.update(f"{place}.{name}" for name in new.keys() - old.keys())
        return {
            name: without_added(value, old[name], place=f"{place}.{name}", added=added)
            for name, value in new.items()
            if name in old
        }
    if place.endswith("cells[].metrics") and isinstance(old, dict):
        # until 23 November 2026 a cell's figures stood by name
        old = [CellMetric.of(name, Figure.model_validate(one)).model_dump() for name, one in old.items()]
    if isinstance(new, list) and place.endswith("s[].metrics"):
        # the document's own lists of named figures
        known = {one["name"] for one in old}
        added.update(f"{place} {one['name']}" for one in new if one["name"] not in known)
        return [one for one in new if one["name"] in known]
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [without_added(one, other, place=f"{place}[]", added=added) for one, other in zip(new, old, strict=True)]
    return new


def changed(new: Any, old: Any, *, place: str) -> Iterator[str]:
    """Every value that is another, with both."""
    if isinstance(new, dict) and isinstance(old, dict):
        for name in sorted(new.keys() | old.keys()):
            yield from changed(new.get(name), old.get(name), place=f"{place}.{name}")
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for number, (one, other) in enumerate(zip(new, old, strict=True)):
            yield from changed(one, other, place=f"{place}[{number}]")
    elif new != old:
        yield f"{place}: {str(old)[:160]!r} is {str(new)[:160]!r}"


def documents(tree: Path, folder: Path, *, seed: int) -> dict[str, Any]:
    """The two documents beside each other."""
    kept = folder / "reports.json"
    old = document(tree, "record", kept, seed=seed)
    new = document(ROOT, "replay", kept, seed=seed)
    added: set[str] = set()
    same = without_added(new, old, place="", added=added)
    texts = [json.dumps(one, indent=1) for one in (old, same)]
    return {
        "cells": len(old["cells"]),
        "comparisons": len(old["comparisons"]),
        "bytes": len(texts[0]),
        "is_same_text": texts[0] == texts[1],
        "added_keys": sorted(added),
        "changed": list(changed(same, old, place=""))[:40],
        "digests_same": [one["digest"] for one in old["cells"]] == [one["digest"] for one in new["cells"]],
    }


def times(tree: Path, folder: Path, *, seed: int, blocks: int) -> dict[str, Any]:
    """What both trees' bench say of one cell, by turns, and how far blocks of one tree are apart: the A/A ratios."""
    found: dict[str, dict[str, list[float]]] = {one: {"before": [], "now": []} for one in TIMES}
    for number in range(blocks):
        for name, place in (("before", tree), ("now", ROOT))[:: 1 if number % 2 == 0 else -1]:
            told = document(place, "record", folder / f"{name}-{number}", seed=seed + number, words=ONE)
            (cell,) = (one for one in told["cells"] if one["twin_of"] is None)
            for one in TIMES:
                found[one][name].append(cell[one])
            print(name, number, {one: cell[one] for one in TIMES}, file=sys.stderr, flush=True)
    return {one: _apart(sides) for one, sides in found.items()}


def _apart(sides: dict[str, list[float]]) -> dict[str, Any]:
    pairs = zip(sides["before"], sides["now"], strict=True)
    twins = [later / earlier for some in sides.values() for earlier, later in pairwise(some)]
    return {
        "ms": {name: [round(one, 5) for one in some] for name, some in sides.items()},
        "now_by_before": round(median(now / before for before, now in pairs), 4),
        "blocks_of_one_tree": round(max(abs(log(one)) for one in twins), 4),
    }


def main() -> int:
    """Prints one JSON object; 1 where a document or the p50 is another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True, help="the commit to hold today's tree against")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=4, help="of each runner")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, tree_of(asked.before, Path(name)) as tree:
        folder = Path(name)
        told = documents(tree, folder, seed=asked.seed)
        print({name: value for name, value in told.items() if name != "changed"}, file=sys.stderr, flush=True)
        measured = times(tree, folder, seed=asked.seed, blocks=asked.blocks)
        figures = {"documents": told, "times": measured}
    misses = [] if told["is_same_text"] and told["digests_same"] else ["the document is another"]
    # the node's A/A margin, or what blocks of one tree are apart here where that is more
    deciding = measured["cpu_p50_ms"]
    margin = max(MARGIN, deciding["blocks_of_one_tree"])
    misses += ["the processor time is another"] if abs(log(deciding["now_by_before"])) > margin else []
    claim = "cells of the scenario single have the documents and the p50 that they had"
    figure.publish(claim=claim, seed=asked.seed, figures={"before": asked.before, **figures, "misses": misses})
    return int(bool(misses))


if __name__ == "__main__":
    sys.exit(main())

"""Whether `single` is what it was before a cell had a scenario: its documents byte by byte, and its p50.

The tree of an older commit measures one block of the reference CNN and writes its document. Today's tree is given the
same reports; its document without the keys that were added since has to be the same text. Then both trees' runners
measure the same block of one cell and its twin, by turns; what the medians are apart is held against the A/A margin:

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
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import figure
from tests.bench.blocks import REFERENCE_MODELS, SUBJECTS, Workplace, runtimes_of_bench, shortened_windows
from worker.agent.kit import stages

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("single_documents.py")
MARGIN = 0.02
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


def document(tree: Path, mode: str, kept: Path, *, seed: int) -> dict[str, Any]:
    """The document that this tree's bench writes of its own reports, or of those that were kept."""
    written = kept.with_suffix(f".{mode}.json")
    asked = [str(REFERENCE_MODELS / "cnn_dyn.onnx"), "--ort", "1.29.0,1.31.1", "--batch", "1,4", "--threads", "1"]
    words = [*asked, "--budget", "quick", "--seed", str(seed), "--json", str(written)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, str(CHILD), mode, str(kept), *words], cwd=tree, env=environment, capture_output=True, text=True
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


def p50s(tree: Path, folder: Path, *, seed: int, blocks: int) -> dict[str, Any]:
    """Both runners' p50 on the encoder, by turns, and how far twins of one runner are apart."""
    subject = SUBJECTS["encoder_dyn"]
    places = {
        name: Workplace(folder / name, runtimes=runtimes_of_bench(), runner=source)
        for name, source in (("before", tree / "worker" / "runner"), ("now", stages.RUNNER))
    }
    found: dict[str, list[float]] = {name: [] for name in places}
    twins: list[float] = []
    with shortened_windows():
        for number in range(blocks):
            for name in list(places)[:: 1 if number % 2 == 0 else -1]:
                place = places[name]
                pairs = place.measure(subject, place.twin_block(subject, seed=seed + number), seed=seed + number).pairs
                found[name].append(median(one for pair in pairs for one in pair))
                twins.append(median(new / old for old, new in pairs))
                print(name, number, found[name][-1], file=sys.stderr, flush=True)
    ratio = median(now / before for before, now in zip(found["before"], found["now"], strict=True))
    return {
        "p50_ms": {name: [round(one, 5) for one in some] for name, some in found.items()},
        "now_by_before": round(ratio, 4),
        "twins_of_one_runner": [round(one, 4) for one in sorted(twins)],
        "margin": MARGIN,
    }


def main() -> int:
    """Prints one JSON object; 1 where a document or the p50 is another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True, help="the commit to hold today's tree against")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=6, help="of each runner")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, tree_of(asked.before, Path(name)) as tree:
        folder = Path(name)
        told = documents(tree, folder, seed=asked.seed)
        figures = {"documents": told, "times": p50s(tree, folder, seed=asked.seed, blocks=asked.blocks)}
    times = figures["times"]
    misses = [] if told["is_same_text"] and told["digests_same"] else ["the document is another"]
    misses += ["the p50 is another"] if abs(times["now_by_before"] - 1.0) > MARGIN else []
    claim = "cells of the scenario single have the documents and the p50 that they had"
    figure.publish(claim=claim, seed=asked.seed, figures={"before": asked.before, **figures, "misses": misses})
    return int(bool(misses))


if __name__ == "__main__":
    sys.exit(main())

"""How long `quickstart --once` takes, and what it finds: alone, or beside busy processes.

    python -m tests.bench.first_minutes [--loops 2] [--cold] [--times 3]

Runs `bash deploy/quickstart --once` of this checkout. `--cold`: without .venv, var and uv's cache, which lie elsewhere
meanwhile. `--loops`: beside so many processes that do nothing but run; they end with the call, however it ends. Answers
seconds until the pages and until the end, and of the comparisons by runtime how many are slower, and by which time.
"""

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from farm.config.embedded.plan import find_free_port
from tests.bench import figure
from tests.bench.busy_aa import beside
from tests.options import read_options

ROOT = Path(__file__).resolve().parents[2]
PAGES = "The pages are up at"


@contextlib.contextmanager
def nothing_installed() -> Iterator[dict[str, str]]:
    """The environment of a first run: another home and uv cache, and no .venv."""
    kept = ROOT / ".venv.kept"
    with tempfile.TemporaryDirectory() as folder:
        (ROOT / ".venv").rename(kept)
        try:
            yield {"ONNXFARM_HOME": f"{folder}/home", "UV_CACHE_DIR": f"{folder}/uv", "PIP_CACHE_DIR": f"{folder}/pip"}
        finally:
            subprocess.run(["rm", "-rf", str(ROOT / ".venv")], check=True)
            kept.rename(ROOT / ".venv")


def run_once(environment: dict[str, str]) -> dict[str, Any]:
    """One run: its seconds and verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run.json"
        argv = [
            "bash",
            str(ROOT / "deploy" / "quickstart"),
            "--once",
            "--json",
            str(out),
            "--port",
            str(find_free_port()),
        ]
        began = time.monotonic()
        process = subprocess.Popen(argv, env=os.environ | environment, stderr=subprocess.PIPE, text=True)
        pages_s, said_at, longest_silence_s = None, began, 0.0
        for line in process.stderr:
            now = time.monotonic()
            longest_silence_s, said_at = max(longest_silence_s, now - said_at), now
            pages_s = now - began if pages_s is None and PAGES in line else pages_s
        status = process.wait()
        wall_s = time.monotonic() - began
        return {
            "status": status,
            "wall_s": round(wall_s, 1),
            "pages_s": None if pages_s is None else round(pages_s, 1),
            "longest_silence_s": round(longest_silence_s, 1),
            "by_runtime": _verdicts(json.loads(out.read_text())) if out.exists() else [],
        }


def _verdicts(document: dict[str, Any]) -> list[str]:
    by_runtime = [one for one in document["comparisons"] if one["axis"] == "runtime"]
    return [f"{one['verdict']} by {one['verdict_from']}, {one['rounds']} rounds" for one in by_runtime]


def main() -> None:
    given = read_options(__doc__, loops=0, cold=False, times=1)
    runs = []
    for _ in range(given.times):
        with contextlib.ExitStack() as stack:
            environment = stack.enter_context(nothing_installed()) if given.cold else {}
            stack.enter_context(beside(given.loops))
            runs.append(run_once(environment))
    claim = "quickstart --once ends within 90 s warm, 180 s cold, 240 s warm beside two busy processes."
    figure.publish(claim=claim, seed=0, figures={"loops": given.loops, "is_cold": given.cold, "runs": runs})


if __name__ == "__main__":
    main()

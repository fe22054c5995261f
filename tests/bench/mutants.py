"""Mutants of real ONNX files through the real upload path: does the web process live, is each told in words?

    python -m tests.bench.mutants --structured 10000 --bytes 10000 --seed 1 [--from N] [--seconds 540]

Starts a whole farm without a node (broker, web, gateway, prepare), sends each mutant as a form, asks for its verdict,
and meanwhile asks the web server for a page ten times a second. One JSON line; exit 1 when the web process died or was
blocked, or a mutant has no verdict in words. `--seconds` stops sending when the time is over; the line says how many
were sent and `next`, with which `--from` goes on: a mutant depends on the seed and its number only.
"""

import argparse
import json
import os
import platform
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

import httpx2

from farm.config.embedded.plan import find_free_port, make_plan
from farm.config.embedded.processes import EmbeddedFarm
from tests.bench import mutating

ENDED = ("ready", "rejected")
SENDERS = 4
IN_FLIGHT = 64
PATIENCE_S = 180.0
BLOCKED_S = 5.0
# a sentence that holds one of these tells of a mistake of ours, or of a worker that was lost
OURS = ("Traceback", "internal error", "was lost")
Mutant = tuple[str, int]


class Prober:
    """Asks the web server ten times a second; the longest answer and how many did not come."""

    def __init__(self, url: str, token: str) -> None:
        self.longest_s = 0.0
        self.asked = 0
        self.failures = 0
        self._over = threading.Event()
        self._client = _client(url, token, timeout_s=30)
        self._thread = threading.Thread(target=self._probe, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._client.close()

    def _probe(self) -> None:
        while not self._over.wait(0.1):
            began = time.monotonic()
            try:
                is_well = self._client.get("/api/v1/me").status_code == 200
            except httpx2.TransportError:
                is_well = False
            self.asked += 1
            self.failures += not is_well
            self.longest_s = max(self.longest_s, time.monotonic() - began)


class Trial:
    """Mutants on their way: some threads send them, one asks for the verdicts, oldest first."""

    def __init__(self, url: str, token: str, *, seed: int) -> None:
        self.verdicts: Counter[str] = Counter()
        self.sentences: Counter[str] = Counter()
        self.wordless: list[str] = []
        self.longest_s = 0.0
        self._client = _client(url, token, timeout_s=120)
        self._seed = seed
        self._models = mutating.seeds()
        self._room = threading.Semaphore(IN_FLIGHT)
        self._waiting: deque[tuple[str, int, float]] = deque()
        self._all_sent = threading.Event()

    def run(self, chosen: Sequence[Mutant], *, seconds: float) -> int:
        """Sends the mutants in turn until the time is over and waits for every verdict; how many were sent."""
        until, sent = time.monotonic() + seconds, 0
        watcher = threading.Thread(target=self._settle)
        watcher.start()
        try:
            with ThreadPoolExecutor(SENDERS) as pool:
                made = []
                for mutant in chosen:
                    self._room.acquire()
                    if time.monotonic() > until:
                        break
                    made.append(pool.submit(self._send, *mutant))
                    sent += 1
                for future in made:
                    future.result()
        finally:
            self._all_sent.set()
            watcher.join()
            self._client.close()
        return sent

    def _send(self, kind: str, number: int) -> None:
        chance = random.Random(f"{self._seed} {kind} {number}")
        model, content = chance.choice(self._models)
        made = mutating.of_structure(content, chance) if kind == "structured" else mutating.of_bytes(content, chance)
        name, began = f"{kind} {number} of {model}", time.monotonic()
        form = {"files": {"files": (f"{model}.onnx", made)}, "data": {"model": model}}
        status, known = self._asked("POST", "/api/v1/uploads", **form)
        if status in (200, 202) and known["state"] not in ENDED:
            self._waiting.append((name, known["id"], began))
        else:
            self._end(name, status, known, began)

    def _asked(self, method: str, path: str, **options: Any) -> tuple[int, dict[str, Any]]:
        """The answer's status and words; 0 without an answer."""
        try:
            answer = self._client.request(method, path, **options)
            return answer.status_code, answer.json()
        except httpx2.TransportError as error:
            return 0, {"detail": f"no answer: {type(error).__name__}"}
        except ValueError:
            return answer.status_code, {"detail": answer.text[:200]}

    def _settle(self) -> None:
        while self._waiting or not self._all_sent.is_set():
            ended = 0
            for _ in range(min(8, len(self._waiting))):
                name, version_id, began = self._waiting.popleft()
                status, known = self._asked("GET", f"/api/v1/versions/{version_id}")
                if known.get("state") in ENDED or time.monotonic() - began > PATIENCE_S:
                    self._end(name, status, known, began)
                    ended += 1
                else:
                    self._waiting.appendleft((name, version_id, began))
                    break
            if not ended:
                time.sleep(0.05)

    def _end(self, name: str, status: int, known: dict[str, Any], began: float) -> None:
        self._room.release()
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        state = known.get("state")
        words = known.get("problem") or known.get("detail") or ""
        if state == "ready":
            self.verdicts["ready"] += 1
            return
        self.verdicts["rejected" if state == "rejected" else f"refused with {status}"] += 1
        self.sentences[_kind(words)] += 1
        if not 200 <= status < 500 or not words.endswith(".") or any(sign in words for sign in OURS):
            self.wordless.append(f"{name}: {status} {state} {words[:200]}")


def _client(url: str, token: str, *, timeout_s: float) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.Client(base_url=url, headers=headers, timeout=httpx2.Timeout(timeout_s))


def _kind(words: str) -> str:
    """A sentence without its names and numbers, so that equal ones count together."""
    return re.sub(r"“[^”]*”|\S+\.onnx|[\d,.]*\d", "…", words)[:70]


def every_mutant(structured: int, by_bytes: int) -> list[Mutant]:
    """Both kinds in turns, by number."""
    kinds = zip_longest(
        (("structured", number) for number in range(structured)), (("bytes", number) for number in range(by_bytes))
    )
    return [one for pair in kinds for one in pair if one is not None]


def figures_of(trial: Trial, prober: Prober) -> dict[str, Any]:
    """What both saw."""
    return {
        "verdicts": dict(trial.verdicts.most_common()),
        "without_words": trial.wordless[:20],
        "sentences": dict(trial.sentences.most_common(12)),
        "different_sentences": len(trial.sentences),
        "longest_mutant_s": round(trial.longest_s, 1),
        "web_asked": prober.asked,
        "web_failures": prober.failures,
        "web_longest_answer_s": round(prober.longest_s, 2),
    }


def run(options: argparse.Namespace, home: Path) -> dict[str, Any]:
    plan = make_plan(home=home, port=find_free_port(), with_node=False)
    chosen = every_mutant(options.structured, options.bytes)[options.first :]
    with EmbeddedFarm(plan) as processes:
        opened = processes.start()
        web = set(_web_processes(opened.url))
        prober, trial = Prober(opened.url, opened.token), Trial(opened.url, opened.token, seed=options.seed)
        began = time.monotonic()
        sent = trial.run(chosen, seconds=options.seconds)
        seconds = time.monotonic() - began
        prober.stop()
        is_alive = bool(web) and set(_web_processes(opened.url)) == web
    return {
        "benchmark": "mutants",
        "command": "python -m tests.bench.mutants " + " ".join(sys.argv[1:]),
        "sent": sent,
        "structured": sum(kind == "structured" for kind, _ in chosen[:sent]),
        "bytes": sum(kind == "bytes" for kind, _ in chosen[:sent]),
        "next": options.first + sent,
        **figures_of(trial, prober),
        "web_is_the_same_process": is_alive,
        "seconds": round(seconds),
        "a_second": round(sent / seconds, 1),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }


def _web_processes(url: str) -> Iterator[int]:
    """Processes that listen on the farm's port, by their command line."""
    port = url.rpartition(":")[2].strip("/")
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if {"farm.config.server", "web", port} <= set(words):
                yield int(entry.name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--structured", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="first", help="`next` of the run before")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop sending after so long")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="onnxfarm-mutants-") as folder:
        figures = run(options, Path(folder) / "home")
        # before the folder is removed, which may fail: a figure takes an hour
        print(json.dumps(figures, ensure_ascii=False), flush=True)
    is_well = figures["web_is_the_same_process"] and not figures["web_failures"] and not figures["without_words"]
    is_whole = figures["sent"] == sum(figures["verdicts"].values())
    return 0 if is_well and is_whole and figures["web_longest_answer_s"] < BLOCKED_S else 1


if __name__ == "__main__":
    sys.exit(main())

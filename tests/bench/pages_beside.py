"""Whether pages cost more than in another commit: both web processes over the same farm, in turns.

python -m tests.bench.pages_beside CHECKOUT [--scale 0.2] [--pairs 8] [--requests 20] [--postgres] --keep FOLDER

`CHECKOUT`: the other commit, with its own `.venv` and `tests/bench`. Each commit seeds the same farm once into FOLDER.
In each of the pairs both start a web process as they do in production, open each page a few times, and then count the
processor time of the server, its workers included, over so many requests of one reader. Of the pages that cost most
there, each pair gives a ratio, this commit's by the other's; the interval is of Student's t over the logarithms of the
pairs. Exit 1 where the ratio of all these pages together is above 1.08.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
from math import exp, log, sqrt
from pathlib import Path
from statistics import geometric_mean, mean, stdev

MAX_RATIO = 1.08
WARM_UPS = 3
# of 95 % in 100, two-sided, by degrees of freedom
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 9: 2.262, 11: 2.201, 15: 2.131}
OWN = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, metavar="CHECKOUT")
    parser.add_argument("--scale", type=float, default=0.2)
    parser.add_argument("--pairs", type=int, default=8, choices=[count + 1 for count in T_95])
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--turn", nargs="*", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.turn is not None:
        print(json.dumps(turn(words, only=words.turn)))
        return 0
    there, here = words.keep.resolve() / "other", words.keep.resolve() / "own"
    all_pages = in_checkout(words.other, there, words, requests=3)
    slowest = sorted(all_pages, key=lambda name: -all_pages[name])[: words.pages]
    pairs = []
    for number in range(words.pairs):
        order = ((words.other, there), (OWN, here))
        found = {
            checkout: in_checkout(checkout, home, words, requests=words.requests, only=slowest)
            for checkout, home in (order if number % 2 else reversed(order))
        }
        pairs.append((found[words.other], found[OWN]))
        sys.stderr.write(f"pair {number + 1}: {together(pairs[-1]):.3f}\n")
    from tests.bench.figure import publish

    whole = interval([together(pair) for pair in pairs])
    figures = {
        "unit": "ms of processor time a request",
        "pages": {
            name: {
                "other_ms": round(mean(other[name] for other, _ in pairs), 2),
                "own_ms": round(mean(own[name] for _, own in pairs), 2),
                **interval([own[name] / other[name] for other, own in pairs]),
            }
            for name in slowest
        },
        "together": whole,
        "max_ratio": MAX_RATIO,
    }
    publish(claim=f"the {words.pages} slowest pages beside another commit", seed=1, figures=figures)
    return int(whole["ratio"] > MAX_RATIO)


def together(pair: tuple[dict[str, float], dict[str, float]]) -> float:
    """The ratio of all pages of a pair, each counting as much as any other."""
    other, own = pair
    return geometric_mean([own[name] / other[name] for name in own])


def interval(ratios: list[float]) -> dict[str, float]:
    """The mean of ratios, and the 95 % interval of that."""
    logs = [log(ratio) for ratio in ratios]
    width = T_95[len(logs) - 1] * stdev(logs) / sqrt(len(logs))
    middle = mean(logs)
    return {"ratio": round(exp(middle), 3), "low": round(exp(middle - width), 3), "high": round(exp(middle + width), 3)}


def in_checkout(
    checkout: Path, home: Path, words: argparse.Namespace, *, requests: int, only: list[str] | None = None
) -> dict[str, float]:
    """Milliseconds of processor time of each page, by a web process of a checkout."""
    command = [str(checkout.resolve() / ".venv/bin/python"), str(Path(__file__).resolve()), str(checkout)]
    command += ["--keep", str(home), "--scale", str(words.scale), "--requests", str(requests)]
    command += [*(["--postgres"] if words.postgres else []), "--turn", *(only or [])]
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    said = subprocess.run(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, check=True).stdout
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    return found


def turn(words: argparse.Namespace, *, only: list[str]) -> dict[str, float]:
    """The figures of one web process of the checkout that this process has on its path."""
    from tests.bench.pages import database

    with database(words) as (home, url):
        return _turn_at(home, url, words, only=only)


def _turn_at(home: Path, url: str, words: argparse.Namespace, *, only: list[str]) -> dict[str, float]:
    from tests.bench.pages import pages_of
    from tests.bench.seeded import farm
    from tests.bench.seeded.web import sessions, web

    seeded = farm.kept(home, scale=words.scale, number=1, database_url=url)
    (key,) = sessions(seeded["reader"], 1)
    pages = [page for page in pages_of(seeded) if not only or page.name in only]
    figures = {}
    with web(home, database_url=url) as server:
        reader = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for page in pages:
            for place in range(max(WARM_UPS, len(page.addresses))):
                read(reader, page.addresses[place % len(page.addresses)], key)
            began = server.cpu_s()
            for place in range(words.requests):
                read(reader, page.addresses[place % len(page.addresses)], key)
            figures[page.name] = 1000 * (server.cpu_s() - began) / words.requests
    from django.db import connections

    connections.close_all()
    return figures


def read(reader: http.client.HTTPConnection, address: str, key: str) -> None:
    """One page. Raises SystemExit for anything but a page."""
    reader.request("GET", address, headers={"Cookie": f"onnxfarm_session={key}"})
    answer = reader.getresponse()
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"{address} answered {answer.status}")


if __name__ == "__main__":
    sys.exit(main())

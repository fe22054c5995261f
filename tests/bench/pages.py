"""How long the server takes for each page of a large farm, with how many queries, and how heavy the pages are.

`python -m tests.bench.pages [--postgres] [--scale 1.0] [--seed 1] [--keep FOLDER] [--only NAME…] [--requests 40]`, and
`python -m tests.bench.seeded.growth FOLDER --times N` for a farm N times as large on PostgreSQL.

Scale 1: 1,000 models, 200 nodes, 5,000 runs, 1,000,000 measurements; a run of 5,000 cells and a series of 10,000 points
are there from scale 0.1 on.
Runs, blocks and comparisons are copies of some that the services made, under other numbers; nothing was measured, no
model file lies in the store, and of reports only the facts are kept. `--keep`: the farm is seeded once into that
folder, its PostgreSQL with it, and used again. Without it a private PostgreSQL is seeded anew each time.

Times are those of Django's own client in this process, the whole stack of middleware included, a socket and the server
not; queries are counted in a pass of their own. `cpu_p95_ms` is the processor time of the same requests, which others
on the machine do not lengthen as much; of PostgreSQL it leaves out the database. `first_ms` is the first request for a
page in this process. The weight is the page with its style sheet and scripts, uncompressed, without charts. Exit 1 when
a target is missed.
"""

import argparse
import contextlib
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.bench.figure import publish
from tests.bench.seeded import farm, growth
from tests.postgres import SKIPPED, Cluster, NoPostgresError

LIST_MS, LARGE_RUN_MS, SERIES_MS, COMPARE_MS = 100.0, 250.0, 100.0, 150.0
MOST_PAGE_BYTES, MOST_CHART_BYTES = 150_000, 300_000
# a figure's picture, and what Plotly would draw it from
CHART = re.compile(rb'<div class="chart".*?</script>', re.DOTALL)
ASSETS = re.compile(rb'<(?:script|link)[^>]* (?:src|href)="(/static/[^"]+)"')


@dataclass(frozen=True)
class Page:
    """Addresses that are one page with other rows. `target_ms` of the p95; None: nothing was promised."""

    name: str
    addresses: list[str]
    target_ms: float | None = None


def pages_of(seeded: dict[str, Any]) -> list[Page]:
    """Every page, the lists first; lists also searched, filtered and far behind their first page."""
    from farm.alerts.models import Alert, Watch
    from farm.fleet.models import Node
    from farm.registry.models import Model, Variant
    from farm.runs.models import Run

    def of(rows: Any, address: str) -> list[str]:
        numbers = list(rows.filter(team__name="vision").order_by("pk").values_list("pk", flat=True))
        return [address.format(number) for number in numbers[:: max(1, len(numbers) // 10)][:10]]

    large, watch = f"/runs/{seeded['large_run']}/", f"/watches/{seeded['long_watch']}/"
    concluded = Run.objects.filter(is_concluded=True).exclude(pk=seeded["large_run"])
    runs = of(concluded, "/runs/{}/")
    numbers = [address.split("/")[2] for address in runs]
    pairs = [f"/compare/?cells={one}:c1&cells={two}:c2" for one, two in pairwise(numbers)]
    same = [f"/compare/?cells={one}:c1&cells={one}:c2&cells={one}:c3" for one in numbers]
    cells = f"{seeded['large_run']}:c{{}}"
    in_large = [f"/compare/?cells={cells.format(one)}&cells={cells.format(one + 1)}" for one in (1, 11, 21)]
    # an upload as it is has no page of its own
    variants = [row.pk for row in Variant.objects.order_by("pk")[:20] if not row.recipe.is_identity][:10]
    return [
        Page("home", ["/"], LIST_MS),
        Page("models", ["/models/", "/models/?page=9", "/models/?q=encoder"], LIST_MS),
        Page("runs", ["/runs/", "/runs/?page=60", "/runs/?q=encoder", "/runs/?state=running"], LIST_MS),
        Page("alerts", ["/alerts/", "/alerts/?state=all", "/alerts/?state=all&page=20&q=large"], LIST_MS),
        Page("watches", ["/watches/", "/watches/?page=2"], LIST_MS),
        Page("fleet", ["/fleet/", "/fleet/?page=2"], LIST_MS),
        Page("runtimes", ["/fleet/runtimes/", "/fleet/runtimes/?distribution=onnxruntime"], LIST_MS),
        Page("settings", ["/settings/tokens/"], LIST_MS),
        Page("the largest run", [large, f"{large}?metric=p50", f"{large}?columns=batch"], LARGE_RUN_MS),
        Page("the longest series", [watch], SERIES_MS),
        Page("trends of the longest series", [f"/trends/?watch={seeded['long_watch']}"], SERIES_MS),
        Page("compare", ["/compare/", *pairs, *same], COMPARE_MS),
        Page("compare within the largest run", [*in_large, f"/compare/?run={seeded['large_run']}"], COMPARE_MS),
        Page("run", runs),
        Page("run, charts", [f"{runs[-1]}?chart={name}" for name in ("latency", "operators", "providers", "pareto")]),
        Page("the largest run, charts", [f"{large}?chart={name}" for name in ("latency", "operators", "providers")]),
        Page("run being measured", [f"/runs/{seeded['live_run']}/"]),
        Page("cell", [f"{address}cells/c2/" for address in runs]),
        Page("cell of the largest run", [f"{large}cells/c{one}/" for one in (1, 12, 23)]),
        Page("model", of(Model.objects, "/models/{}/")),
        Page("variant", [f"/variants/{number}/" for number in variants]),
        Page("alert", of(Alert.objects, "/alerts/{}/")),
        Page("watch", of(Watch.objects.exclude(pk=seeded["long_watch"]), "/watches/{}/")),
        Page("node", of(Node.objects, "/fleet/{}/")),
        Page("new run", ["/runs/new/"]),
        Page("new watch", ["/watches/new/"]),
        Page("digest", ["/alerts/?state=all&days=7"]),
    ]


class Reader:
    """A member who is signed in and opens pages."""

    def __init__(self, name: str) -> None:
        from django.test import Client

        from farm.accounts.models import User

        self.client = Client(SERVER_NAME="127.0.0.1")
        self.client.force_login(User.objects.get(username=name))
        self.cpu_ms: list[float] = []
        self._assets: dict[str, int] = {}

    def timed(self, address: str) -> tuple[float, bytes]:
        """Milliseconds, and the page. Raises SystemExit for anything but a page."""
        began, used = time.perf_counter(), time.process_time()
        response = self.client.get(address)
        took_ms = 1000 * (time.perf_counter() - began)
        self.cpu_ms.append(1000 * (time.process_time() - used))
        if response.status_code != 200:
            raise SystemExit(f"{address} answered {response.status_code}")
        return took_ms, response.content

    def queries(self, address: str) -> int:
        """How many queries a page takes."""
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as captured:
            self.timed(address)
        return len(captured)

    def assets(self, page: bytes) -> int:
        """Bytes of the style sheets and scripts of a page, Plotly apart."""
        return sum(self._size(one.decode()) for one in ASSETS.findall(page) if b"plotly" not in one)

    def _size(self, address: str) -> int:
        from django.contrib.staticfiles import finders

        if address not in self._assets:
            path = finders.find(address.removeprefix("/static/"))
            self._assets[address] = Path(str(path)).stat().st_size if path else 0
        return self._assets[address]


def measured(page: Page, reader: Reader, requests: int) -> dict[str, Any]:
    """The figures of one page, and what of them misses a target."""
    first_ms, _ = reader.timed(page.addresses[0])
    contents = [reader.timed(address)[1] for address in page.addresses]
    queries = [reader.queries(address) for address in page.addresses]
    times = [reader.timed(page.addresses[place % len(page.addresses)])[0] for place in range(requests)]
    p95_ms = statistics.quantiles(times, n=20, method="inclusive")[-1]
    cpu_p95_ms = statistics.quantiles(reader.cpu_ms[-requests:], n=20, method="inclusive")[-1]
    heaviest = max(contents, key=len)
    chart = max((len(one) for content in contents for one in CHART.findall(content)), default=0)
    weight = len(heaviest) + reader.assets(heaviest)
    missed = [
        *(["time"] if page.target_ms is not None and p95_ms > page.target_ms else []),
        *(["weight"] if weight - chart > MOST_PAGE_BYTES else []),
        *(["chart"] if chart > MOST_CHART_BYTES else []),
    ]
    return {
        "p50_ms": round(statistics.median(times), 1),
        "p95_ms": round(p95_ms, 1),
        "cpu_p95_ms": round(cpu_p95_ms, 1),
        "first_ms": round(first_ms, 1),
        "target_ms": page.target_ms,
        "queries": max(queries),
        "html_bytes": len(heaviest),
        "page_bytes": weight - chart,
        "chart_bytes": chart,
        "missed": missed,
    }


@contextlib.contextmanager
def database(words: argparse.Namespace) -> Iterator[tuple[Path, str]]:
    """The farm's folder and the address of its database."""
    with contextlib.ExitStack() as stack:
        home = words.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="pages-"))
        made = Path(home).resolve()
        made.mkdir(parents=True, exist_ok=True)
        url = ""
        if words.postgres:
            cluster = growth.kept_cluster(made) if words.keep else Cluster(durable=True)
            url = stack.enter_context(cluster).url
        yield made, url


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", metavar="FOLDER")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="pages whose name holds one of these")
    parser.add_argument("--requests", type=int, default=40)
    words = parser.parse_args()
    try:
        with database(words) as (home, url):
            return _measure(home, url, words)
    except NoPostgresError as problem:
        sys.stderr.write(f"skipped: {problem}\n")
        return SKIPPED


def _measure(home: Path, url: str, words: argparse.Namespace) -> int:
    seeded = farm.kept(home, scale=words.scale, number=words.seed, database_url=url)
    reader = Reader(seeded["reader"])
    wanted = [page for page in pages_of(seeded) if not words.only or any(one in page.name for one in words.only)]
    figures = {page.name: measured(page, reader, words.requests) for page in wanted}
    missed = {name: found["missed"] for name, found in figures.items() if found["missed"]}
    name = "PostgreSQL" if words.postgres else "SQLite"
    publish(
        claim=f"pages of a farm at scale {words.scale:g} on {name}{_grown(home)}",
        seed=words.seed,
        figures={
            "rows": seeded["rows"],
            "size": seeded["size"],
            "seeded_s": seeded["seeded_s"],
            "pages": figures,
            "missed": missed,
        },
    )
    from django.db import connections

    connections.close_all()
    return 1 if missed else 0


def _grown(home: Path) -> str:
    note = home / "grown.json"
    return f", {json.loads(note.read_text())['copies'] + 1} times as large" if note.exists() else ""


if __name__ == "__main__":
    sys.exit(main())

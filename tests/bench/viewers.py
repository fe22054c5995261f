"""What it costs that many people look at a run while it is measured: each page asks every few seconds for its changes.

`python -m tests.bench.viewers [--viewers 300] [--seconds 60] [--every 0] [--postgres] [--scale 0.05] [--keep FOLDER]`

The server is the web process as the embedded farm starts it (one process, eight threads), on a seeded farm (see
tests.bench.pages); each viewer has a session and a connection of their own and asks what htmx asks, as often as the
page itself says. `--every`: the run changes every so many seconds, as reports of rounds change it; 0: never. Exit 1
when the server takes more than 30 % of a core, or a viewer waits for more than a second at p95.
"""

import argparse
import asyncio
import random
import re
import statistics
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

import psutil

from tests.bench.figure import publish
from tests.bench.pages import database
from tests.bench.seeded import farm
from tests.bench.seeded.web import sessions, web
from tests.postgres import SKIPPED, NoPostgresError

MOST_CORES, MOST_WAIT_S = 0.30, 1.0
JOINING_S = 10.0
ASKS = re.compile(r'<div id="live"[^>]* hx-get="([^"]+)" hx-trigger="every (\d+)s"')


@dataclass
class Tally:
    """What all viewers saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    waits_s: list[float] = field(default_factory=list)
    received: int = 0


@dataclass(frozen=True)
class Page:
    """What a page asks again and again, every how many seconds, and the cookie that its forms left in the browser."""

    asks: str
    period_s: float
    cookie: str

    @classmethod
    def opened(cls, url: str, path: str, session: str) -> Self:
        """As its own markup and headers say."""
        request = urllib.request.Request(url + path, headers={"Cookie": f"onnxfarm_session={session}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = ASKS.search(answer.read().decode())
            cookies = [one.partition(";")[0] for one in answer.headers.get_all("Set-Cookie", [])]
        if found is None:
            raise SystemExit(f"{path} does not ask for its changes")
        return cls(path + found[1], float(found[2]), "; ".join(one for one in cookies if "csrf" in one))


class Viewer:
    """One open page: a connection that lasts as long as the server lets it, and the last ETag."""

    def __init__(self, port: int, page: "Page", session: str, tally: Tally) -> None:
        self._port = port
        self._period_s = page.period_s
        self._head = (
            f"GET {page.asks} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Cookie: onnxfarm_session={session}; {page.cookie}\r\nHX-Request: true\r\nAccept: */*\r\n"
        )
        self._tally = tally
        self._etag = ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def look(self, stop: asyncio.Event, dice: random.Random) -> None:
        """Asks again and again; the first time somewhere within the first seconds."""
        await asyncio.sleep(dice.uniform(0, JOINING_S))
        while not stop.is_set():
            began = time.monotonic()
            await self._ask()
            self._tally.waits_s.append(time.monotonic() - began)
            await asyncio.sleep(max(0.0, self._period_s - (time.monotonic() - began)))
        self._hang_up()

    async def _ask(self) -> None:
        try:
            status = await self._exchange()
        except (ConnectionError, asyncio.IncompleteReadError):
            # the server had closed a connection that was idle
            self._hang_up()
            status = await self._exchange()
        self._tally.statuses[status] += 1

    async def _exchange(self) -> int:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        condition = f"If-None-Match: {self._etag}\r\n" if self._etag else ""
        writer.write(f"{self._head}{condition}\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        self._tally.received += len(body)
        self._etag = fields.get("etag", self._etag)
        if fields.get("connection", "").lower() == "close":
            self._hang_up()
        return int(head[0].split()[1])

    def _hang_up(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def watched(viewers: list[Viewer], words: argparse.Namespace, use: Any, change: Any) -> dict[str, Any]:
    """All viewers look; figures are of the seconds after they have all come."""
    stop, dice = asyncio.Event(), random.Random(words.seed)
    tasks = [asyncio.create_task(viewer.look(stop, dice)) for viewer in viewers]
    await asyncio.sleep(JOINING_S + viewers[0]._period_s)
    tally = viewers[0]._tally
    tally.statuses.clear()
    tally.waits_s.clear()
    before, began = use(), time.monotonic()
    changes = 0
    while (left := words.seconds - (time.monotonic() - began)) > 0:
        await asyncio.sleep(min(left, words.every or left))
        if words.every and left > words.every:
            await asyncio.to_thread(change)
            changes += 1
    after, took_s = use(), time.monotonic() - began
    figures: dict[str, object] = {"seconds": round(took_s, 1), "changes": changes, "requests": tally.statuses.total()}
    figures |= {name: round((after[name] - before[name]) / took_s, 3) for name in after}
    figures |= {"answers": dict(tally.statuses), "received_mb": round(tally.received / 1e6, 1)}
    waits = statistics.quantiles(tally.waits_s, n=20, method="inclusive")
    figures["wait_ms"] = {"p50": round(1000 * statistics.median(tally.waits_s), 1), "p95": round(1000 * waits[-1], 1)}
    stop.set()
    await asyncio.gather(*tasks)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewers", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=0.0, help="seconds between two changes of the run; 0: none")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", metavar="FOLDER")
    words = parser.parse_args()
    try:
        with database(words) as (home, url):
            figures = _measure(home, url, words)
    except NoPostgresError as problem:
        sys.stderr.write(f"skipped: {problem}\n")
        return SKIPPED
    publish(claim=f"{words.viewers} viewers of a run that is measured", seed=words.seed, figures=figures)
    return 0 if figures["kept"] else 1


def _measure(home: Any, url: str, words: argparse.Namespace) -> dict[str, Any]:
    seeded = farm.kept(home, scale=words.scale, number=words.seed, database_url=url)
    from django.db import connections

    from farm.runs.models import Run

    run = Run.objects.get(pk=seeded["live_run"])
    keys = sessions(seeded["reader"], words.viewers)
    with web(home, database_url=url) as server:
        tally = Tally()
        page = Page.opened(server.url, f"/runs/{run.pk}/", keys[0])
        viewers = [Viewer(server.port, page, key, tally) for key in keys]
        mine = psutil.Process()

        def use() -> dict[str, float]:
            return {"server_cores": server.cpu_s(), "client_cores": sum(mine.cpu_times()[:2]), **_database_cores(url)}

        figures = asyncio.run(watched(viewers, words, use, run.touch))
    connections.close_all()
    promises = {
        "at most 30 % of a core": figures["server_cores"] <= MOST_CORES,
        "nobody waits a second": figures["wait_ms"]["p95"] <= 1000 * MOST_WAIT_S,
        "every answer is 200 or 304": set(figures["answers"]) <= {200, 304},
    }
    cells = {"cells": run.cell_count, "database": "PostgreSQL" if url else "SQLite"}
    return {"run": cells, "period_s": page.period_s, **figures, "promises": promises, "kept": all(promises.values())}


def _database_cores(url: str) -> dict[str, float]:
    """Processor time of PostgreSQL's processes so far, which the server's does not hold."""
    if not url:
        return {}
    parts = [one for one in psutil.process_iter(["name"]) if one.info["name"] == "postgres"]
    return {"database_cores": sum(sum(one.cpu_times()[:2]) for one in parts)}


if __name__ == "__main__":
    sys.exit(main())

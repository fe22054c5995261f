"""The seeded farm: a home folder with a database in it as a large installation has after half a year."""

import json
import os
import random
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

RUN_SIZES = {"small": (["1.29.0", "1.31.1"], [1, 8], ["fp32"]), "usual": (["1.29.0", "1.31.1"], [1, 2, 4, 8], ["fp32"])}
RUN_SIZES |= {
    "wide": (["1.28.0", "1.29.0", "1.30.0", "1.31.1"], [1, 2, 4, 8, 16, 32], ["fp32", "int8-dynamic"]),
    "wider": (["1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.0", "1.31.1"], [1, 2, 4, 8, 16, 32],
              ["fp32", "int8-dynamic"]),
}  # fmt: skip
# how often each size comes: most runs compare two releases, a few are wide
WEIGHTS = {"small": 25, "usual": 40, "wide": 27, "wider": 8}
OPEN_RUNS = 6
# from this scale on
LARGE_FROM = 0.1


@dataclass(frozen=True)
class Size:
    """How much of everything there is."""

    models: int
    nodes: int
    runs: int
    measurements: int
    cells: int
    points: int
    watches: int
    alerts: int
    audit: int

    @classmethod
    def of(cls, scale: float) -> "Size":
        """`scale` 1 is what the pages have to stand."""

        def part(number: int, least: int = 1) -> int:
            return max(least, round(number * scale))

        return cls(
            models=part(1000, 20), nodes=part(200, 30), runs=part(5000, 60), measurements=part(1_000_000),
            # one run and one series are as large as they get, however little else there is
            cells=5000 if scale >= LARGE_FROM else part(5000, 50),
            points=10_000 if scale >= LARGE_FROM else part(10_000, 100),
            watches=part(60, 4), alerts=part(2000, 40),
            audit=part(20_000, 20),
        )  # fmt: skip


def use(home: Path, *, database_url: str = "") -> None:
    """Sets Django up for a farm in this folder; before anything of it is imported."""
    home.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "farm.config.settings",
        "ONNXFARM_HOME": str(home),
        "ONNXFARM_DATABASE_URL": database_url,
        "ONNXFARM_LOG_LEVEL": "CRITICAL",
    }
    import django

    django.setup()


def seed(*, size: Size, number: int) -> dict[str, Any]:
    """Makes the tables and fills them; gives what the benches ask for and how much there is."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    began = time.monotonic()
    found = _Seeding(size, random.Random(number)).run()
    return {**found, "size": asdict(size), "seed": number, "seeded_s": round(time.monotonic() - began, 1)}


class _Seeding:
    """One filling. The services make what stands as a pattern; copies of it are written in bulk."""

    def __init__(self, size: Size, dice: random.Random) -> None:
        from django.utils import timezone

        from tests.bench.seeded.writing import Writer

        self.size = size
        self.dice = dice
        self.writer = Writer()
        self.now = timezone.now()
        self.since = self.now - timedelta(days=175)

    def run(self) -> dict[str, Any]:
        from tests.bench.seeded import machines
        from tests.bench.seeded.writing import check, fast

        self.folk = machines.people(self.writer)
        with fast():
            self.lines = machines.models(self.writer, self.dice, self.folk, self.size.models, since=self.since)
            self.nodes = machines.nodes(self.writer, self.dice, self.folk, self.size.nodes, now=self.now)
            machines.audit(self.writer, self.dice, self.folk, self.size.audit, now=self.now)
            self.writer.flush()
        self.writer.set_sequences()
        self._patterns()
        with fast():
            runs = self._runs()
            long_watch = self._watches(runs)
            self.writer.flush()
        self.writer.set_sequences()
        large = self._large()
        self.writer.set_sequences()
        live = self._open_runs()
        check()
        return {
            "reader": self.folk.reader.username,
            "large_run": large,
            "live_run": live,
            "long_watch": long_watch,
            "rows": self._rows(),
        }

    def _patterns(self) -> None:
        """One run of each size, by the services from its start to its conclusion."""
        from farm.runs.services import conclude_runs
        from tests.bench.seeded.large import quick_node
        from tests.bench.seeded.runs import template_of
        from tests.integration.dashboard import rows

        node = rows.make_node(self.folk.team, self.folk.reader, name="bench-pattern")
        version = rows.make_version(self.folk.team, self.folk.reader, name="pattern")
        self.patterns = {}
        for name, (runtimes, batches, precisions) in RUN_SIZES.items():
            axes = {"runtime": runtimes, "batch": batches, "precision": precisions, "threads": [1]}
            run = rows.begin_run(version, self.folk.reader, matrix={"budget": "quick", "matrix": axes})
            quick_node(node).measure(run)
            conclude_runs()
            run.refresh_from_db()
            assert run.is_concluded, run.sentence
            self.patterns[name] = template_of(run)
        self.pattern_version = version

    def _runs(self) -> list[int]:
        """Runs over half a year; a few models get most of them."""
        from tests.bench.seeded.runs import Copier, Place

        copier, found = Copier(self.writer, self.dice), []
        sizes = self._sizes()
        measured = [line for line in self.lines if line.version.model.team_id == self.folk.team.pk]
        weights = [1 / (1 + place) ** 0.7 for place in range(len(measured))]
        able = [node for node in self.nodes if node.health == "active"]
        for number, name in enumerate(sizes):
            line = self.dice.choices(measured, weights)[0]
            at = self.since + timedelta(days=174) * (number / len(sizes))
            by = self.dice.choice(self.folk.everybody).pk
            place = Place(line.version, self.dice.choice(able), by, at, line.variants, line.preparations)
            found.append(copier.copy(self.patterns[name], place).pk)
        return found

    def _sizes(self) -> list[str]:
        """A size for each run, so that there are as many measurements as were asked for."""
        names, weights = list(WEIGHTS), list(WEIGHTS.values())
        sizes = self.dice.choices(names, weights, k=self.size.runs)
        counts = {name: self.patterns[name].measurements for name in names}
        wanted = self.size.measurements - 8 * self.size.cells
        total = sum(counts[name] for name in sizes)
        place = 0
        while total < wanted and place < len(sizes):
            if sizes[place] != "wider":
                total += counts["wider"] - counts[sizes[place]]
                sizes[place] = "wider"
            place += 1
        self.dice.shuffle(sizes)
        return sizes

    def _watches(self, runs: list[int]) -> int:
        from tests.bench.seeded.watching import Watching

        watching = Watching(self.writer, self.dice, self.folk, runs=runs, nodes=self.nodes)
        watching.releases(self.now)
        mine = [line.version for line in self.lines if line.version.model.team_id == self.folk.team.pk]
        made = []
        for number in range(self.size.watches):
            version = mine[number % len(mine)]
            made.append((watching.watch(f"watch {number}", version, now=self.now), version))
        long = watching.watch("the long series", mine[0], now=self.now, rounds=self.size.points, series=1)
        watching.alerts(made, self.size.alerts, now=self.now)
        return long.pk

    def _large(self) -> int:
        from tests.bench.seeded import large

        run = large.start(self.pattern_version, self.folk.reader, self.size.cells)
        return large.end(run, self.nodes[0], self.patterns["small"], self.writer, self.dice).pk

    def _open_runs(self) -> int:
        """Runs that are being measured: the last of them is the one to look at while it fills in."""
        from tests.bench.seeded.large import quick_node
        from tests.integration.dashboard import rows

        runtimes, batches, precisions = RUN_SIZES["wide"]
        axes = {"runtime": runtimes, "batch": batches, "precision": precisions, "threads": [1]}
        for number in range(OPEN_RUNS):
            node = rows.make_node(self.folk.team, self.folk.reader, name=f"bench-busy-{number}")
            run = rows.begin_run(self.pattern_version, self.folk.reader, matrix={"budget": "quick", "matrix": axes})
            quick_node(node).measure(run, most_blocks=1, most_rounds=3)
        return run.pk

    def _rows(self) -> dict[str, int]:
        from django.apps import apps

        rooms = ("accounts", "registry", "fleet", "runs", "alerts")
        tables = [model for room in rooms for model in apps.get_app_config(room).get_models()]
        return {model.__name__: count for model in tables if (count := model._default_manager.count())}


def kept(home: Path, *, scale: float, number: int, database_url: str = "") -> dict[str, Any]:
    """The farm in this folder, seeded when it is not yet."""
    use(home, database_url=database_url)
    note = home / "seeded.json"
    wanted = {"scale": scale, "number": number}
    if note.exists() and (told := json.loads(note.read_text()))["asked"] == wanted:
        from django.core.management import call_command

        # what was seeded before an index came gets it now
        call_command("migrate", verbosity=0)
        return dict(told)
    found = {**seed(size=Size.of(scale), number=number), "asked": wanted}
    note.write_text(json.dumps(found, indent=2))
    return found

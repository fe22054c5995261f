"""Models as a list: what the last run of each led with, and how it stands by its watches."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard.reading import runs
from farm.rules.presenting.headlines import Lead
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted, verdict_entry
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    from dashboard.reading.standings import Standing
    from farm.registry.models import Model, Version
    from farm.registry.selectors import Counted
    from farm.runs.models import Run


@dataclass(frozen=True)
class Line:
    """A model with its last run and with that of its series that stands worst, where there are any; `state` is that of
    its newest version, `run_state` that of its last run."""

    model: "WithAnnotations[Model, Counted]"
    run: "Run | None"
    stands: "Standing | None"
    state: str = ""
    run_state: str = ""

    @property
    def lead(self) -> Lead:
        """What its last run leads with."""
        return runs.lead_of(self.run)


def _name(line: Line) -> Entry:
    model = line.model
    return Entry(model.name, href=reverse("dashboard:model", args=[model.pk]), title=model.description[:300])


def _last_run(line: Line) -> Entry:
    if line.run is None:
        return Entry(numbers.NOT_MEASURED)
    return runs.link(line.run.pk)


def _state(line: Line) -> Entry:
    """Of the last run; of a version that was never measured, whether it can be."""
    if line.run is not None and line.state != "rejected":
        return verdict_entry(line.run_state)
    return verdict_entry(line.state) if line.state else Entry()


def _measured(line: Line) -> Entry:
    return Entry() if line.run is None else runs.moment(line.run.created_at)


def _watched(line: Line) -> Entry:
    stands = line.stands
    if stands is None:
        return Entry("", soft="not watched")
    return Entry(
        stands.last,
        stands.ratio,
        href=stands.href,
        title=f"{stands.words}, {stands.interval}, with {stands.release}",
        soft="" if stands.spark else f"with {stands.release}",
        spark=stands.spark,
    )


COLUMNS: tuple[Column[Line], ...] = (
    Column("Model", _name, order="name"),
    Column("Last run", _last_run, order="run"),
    Column("State", _state),
    Column("Verdict", lambda line: runs.verdict(line.lead), order="verdict"),
    Number("change", lambda line: runs.change(line.lead), "of what its last run leads with", order="change"),
    Number("interval", lambda line: runs.interval(line.lead)),
    Number("confidence", lambda line: runs.confidence(line.lead), "level of the interval, and rounds"),
    Prose("What", lambda line: runs.what(line.lead)),
    Column("Measured", _measured, order="at"),
    Column("Watched", _watched, "p50 against the pinned release, over the rounds of a watch"),
    Number("versions", lambda line: counted(line.model.version_count), order="versions"),
    Column("Labels", lambda line: Entry(", ".join(line.model.labels))),
    Column("Team", lambda line: Entry(line.model.team.name)),
)
ORDERS = {
    "name": ("name",),
    "run": ("last_run",),
    "verdict": ("last_lead__verdict",),
    "change": ("last_lead__ratio",),
    "at": ("last_run",),
    "versions": ("version_count",),
}
# orders that ask for the newest run of every model
BY_RUN = ("run", "verdict", "change", "at")


def table(lines: Iterable[Line], *, box: str = "") -> Table:
    """Models in columns; their teams where there are several."""
    rows = list(lines)
    columns = COLUMNS if len({line.model.team_id for line in rows}) > 1 else COLUMNS[:-1]
    return Table.of("models", "Models", columns, rows).keyed([line.model.pk for line in rows], box=box)


VERSIONS: tuple[Column["Version"], ...] = (
    Column("Version", lambda one: Entry(f"version {one.number}", one.number, href=f"?version={one.number}")),
    Column("State", lambda one: verdict_entry(one.state)),
    Column("Bundle digest", lambda one: Entry(one.artifact.sha256[:12], is_name=True, title=one.artifact.sha256)),
    Number("size", lambda one: Entry(numbers.size(one.artifact.bytes), one.artifact.bytes)),
    Prose("Note", lambda one: Entry(one.note)),
    Column("Uploaded", lambda one: runs.moment(one.created_at)),
    Column("By", lambda one: Entry(runs.name_of(one.uploaded_by))),
)


def versions(rows: Iterable["Version"], chosen: "Version | None") -> Table:
    """A model's versions; several with the same files name each other."""
    listed = list(rows)
    by_files: dict[str, list[int]] = {}
    for row in listed:
        by_files.setdefault(row.artifact.sha256, []).append(row.number)
    same = {
        row.pk: numbers.listed(
            [f"version {number}" for number in by_files[row.artifact.sha256] if number != row.number]
        )
        for row in listed
    }
    columns = list(VERSIONS)
    if any(same.values()):
        columns.append(Column("Same files as", lambda one: Entry(same[one.pk])))
    if chosen is not None:
        columns.insert(1, Column("Shown", lambda one: Entry("shown above" if one.pk == chosen.pk else "")))
    return Table.of("versions", "Versions", columns, listed).keyed([row.pk for row in listed])

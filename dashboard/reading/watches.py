"""Watches in words: what each watch measures, when it measures next, and what its last rounds found."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils import timezone

from dashboard.reading.alerts import find_gravest
from dashboard.reading.openings import split_brackets, split_first_sentence
from dashboard.reading.runs import link_run
from farm.rules.cells.axes import MATRIX_AXES
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.values import ProviderChoice, Value, format_value
from farm.rules.findings.kinds import KINDS
from farm.rules.matrices import matrix as matrices
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_time, verdict_entry
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import Sign, sign_of

if TYPE_CHECKING:
    from farm.alerts.models import Alert, Watch, WatchRound

# by distribution: when the package index was last queried, and what went wrong then, empty where nothing did
IndexQueries = Mapping[str, tuple[datetime | None, str]]
# outcomes of rounds, the gravest first; the gravest outcome stands for all rounds of a cause
GRAVEST = ("alert", "infra", "undecided", "unconfirmed", "news", "quiet", "")
# headlines for outcomes whose own sentence is too long for a headline
SHORT = {
    "undecided": "Whether {model} is slower with {new} than with {old} is undecided",
    "unconfirmed": "{model}: a fresh block did not confirm the change with {new}",
    "infra": "{model} could not be judged with {new}",
}
# the farm looks at what is due once a minute, and later on a busy machine
GRACE = timedelta(minutes=5)
UNDER_WAY = {"confirming": "Confirming", "measuring": "Measuring", "queued": "Queued:", "waiting": "Queued:"}
# the result of the second measurement in words, by the outcome of the round
CONFIRMATIONS = {"alert": "confirmed", "unconfirmed": "not confirmed"}
# the axes of a watch's matrix in the order of its sentence, without the releases, which the sentence names elsewhere
_FIRST = ("provider", "precision", "batch", "threads", "opset", "hardware", "optimization")
AXES_NAMED = (*_FIRST, *(axis for axis in MATRIX_AXES if axis not in (*_FIRST, "runtime")))
ROUND_COLUMNS: tuple[Column["WatchRound"], ...] = (
    Column("Round", lambda round_: Entry(f"round {round_.pk}", round_.pk)),
    Column("Model", lambda round_: Entry(str(round_.version))),
    Column("Trigger", lambda round_: Entry(round_.get_cause_display())),
    Column("Releases", lambda round_: Entry(f"{round_.step}{_describe_pinned(round_)}")),
    Column("State", lambda round_: verdict_entry(_find_state(round_))),
    Prose("Result", lambda round_: Entry(split_brackets(round_.sentence)[0], title=round_.sentence)),
    Column("Runs", lambda round_: link_runs(round_)),
    Number("pairs", lambda round_: Entry(str(round_.compared) if round_.state == "judged" else "", round_.compared)),
    Column("Judged", lambda round_: as_time(round_.judged_at)),
)


@dataclass(frozen=True)
class WatchStatus:
    """The state of a watch: as one `sentence`, and split into `headline` and `rest`. `at`: when its alert was opened or
    its round judged, None while the round is open; `is_open`: a round is being measured or waits; `run`: the number of
    the run that the sentence is about, None where it is about an alert."""

    sign: Sign
    sentence: str
    headline: str
    rest: str
    at: datetime | None
    is_open: bool
    run: int | None = None


@dataclass(frozen=True)
class Line:
    """A watch in the list. `what`: a sentence that says what the watch measures; `next`: when it measures next; `last`:
    the state after its last rounds, None before the first round."""

    watch: "Watch"
    what: str
    next: str
    last: WatchStatus | None
    open_alerts: int


def make_line(
    watch: "Watch", *, rounds: Sequence["WatchRound"], alerts: Sequence["Alert"], queries: IndexQueries
) -> Line:
    """Make a watch's line of the list. `rounds`: the rounds of its current cause, one for each model, open or judged;
    `alerts`: its open alerts, the newest first; `queries`: the last queries of the package index."""
    return Line(
        watch=watch,
        what=describe_watch(watch),
        next=describe_next_start(watch, queries),
        last=find_status(rounds, alerts),
        open_alerts=len(alerts),
    )


def write_headline(lines: Sequence[Line]) -> str:
    """Say how many watches there are, and how many of them have open alerts, measure now, or could not measure. A watch
    with an open alert counts only as that."""
    if not lines:
        return "No watches yet"
    signs = [line.last.sign for line in lines if line.last is not None]
    measuring = sum(sign in (sign_of("measuring"), sign_of("confirming")) for sign in signs)
    alerting, broken = signs.count(sign_of("alert")), signs.count(sign_of("infra"))
    counts = ((alerting, "with open alerts"), (measuring, "measuring now"), (broken, "could not measure"))
    parts = [f"{count} {what}" for count, what in counts if count]
    first = numbers.counted(len(lines), "watch", "watches")
    return f"{first}: {numbers.listed(parts)}" if parts else first


def describe_watch(watch: "Watch") -> str:
    """Say in a sentence which models are watched, with which settings, when they are measured, and against what."""
    models = [model.name for model in watch.watched.all()]
    who = [numbers.listed(models, most=4)] if models else []
    who += [f"every model labelled “{watch.label}”"] if watch.label else []
    when = " or ".join(list_reasons(watch))
    against = f"always beside {watch.distribution} {watch.reference}"
    again = f"again when {when}" if when else "only on request"
    return f"{' and '.join(who)} ({describe_matrix(watch.matrix)}), {again}, {against}."


def list_reasons(watch: "Watch") -> list[str]:
    """List in words the events that make a watch measure; empty where it measures only on request."""
    causes = []
    if watch.on_release:
        early = " or a pre-release" if watch.with_prereleases else ""
        causes.append(f"a release{early} of {watch.distribution} appears")
    if watch.on_version:
        causes.append("a model gets a version")
    if watch.compares_versions:
        causes.append("a version is there to compare with the one before")
    if watch.schedule:
        causes.append(f"cron says {watch.schedule}")
    return causes


def describe_matrix(plain: Mapping[str, object]) -> str:
    """Describe the axes of a watch's matrix without its releases: `CPU, fp32 and int8-dynamic, batch 1`. A matrix that
    can no longer be parsed gives a sentence that says so; nothing is raised."""
    try:
        axes = matrices.parse(plain).axes
    except MatrixProblem as problem:
        return f"its matrix can no longer be read: {problem}"
    parts = [_describe_axis(axis, axes[axis]) for axis in AXES_NAMED if axes.get(axis)]
    return ", ".join(parts) or "the default matrix"


def _describe_axis(axis: str, values: Sequence[Value]) -> str:
    if axis == "provider":
        return numbers.listed(
            [titles.provider(value.name) for value in values if isinstance(value, ProviderChoice)], most=4
        )
    shown = numbers.listed([format_value(value) for value in values], most=4)
    return shown if axis in ("precision", "hardware") else f"{axis} {shown}"


def describe_next_start(watch: "Watch", queries: IndexQueries) -> str:
    """Say when a watch next queries the package index or measures, with times in UTC. Uploads of versions are named
    only where there is nothing else to name. The text is `paused` for a paused watch, and `on request` where the watch
    does neither by itself."""
    if not watch.is_active:
        return "paused"
    parts = [_describe_next_query(watch, queries)] if watch.on_release else []
    if watch.schedule and watch.next_at is not None:
        verb = "overdue since" if _is_overdue(watch.next_at) else "measures at"
        parts.append(f"{verb} {watch.next_at:%Y-%m-%d %H:%M} UTC")
    if (watch.on_version or watch.compares_versions) and not parts:
        parts.append("at the next upload of a version")
    return "; ".join(parts) or "on request"


def _is_overdue(due_at: datetime) -> bool:
    return due_at + GRACE < timezone.now()


def _describe_next_query(watch: "Watch", queries: IndexQueries) -> str:
    every = settings.INDEX_POLL_S
    if every <= 0:
        return "this farm does not query the package index"
    looked_at, problem = queries.get(watch.distribution, (None, ""))
    if looked_at is None:
        return "queries the package index within a minute"
    due_at = looked_at + timedelta(seconds=every)
    due = f"queries the package index at {due_at:%H:%M} UTC"
    if _is_overdue(due_at):
        due = f"overdue: the package index was last queried at {looked_at:%Y-%m-%d %H:%M} UTC"
    return f"{due}; the last time it failed: {problem}" if problem else due


def find_status(rounds: Sequence["WatchRound"], alerts: Sequence["Alert"] = ()) -> WatchStatus | None:
    """Find the state of a watch: its gravest open alert, else its open round, else the gravest outcome of its judged
    rounds. None without rounds and alerts. `alerts`: its open alerts, the newest first."""
    opened = sorted((round_ for round_ in rounds if round_.state != "judged"), key=lambda round_: round_.state)
    found = _describe_judged(rounds) if rounds and not opened else None
    if opened:
        found = _describe_measured(opened[0], ended=len(rounds) - len(opened), of=len(rounds))
    return _describe_alerts(alerts, found) if alerts else found


def _describe_alerts(alerts: Sequence["Alert"], found: WatchStatus | None) -> WatchStatus:
    alert, is_open = find_gravest(alerts), found is not None and found.is_open
    sentence = numbers.unbroken(alert.sentence)
    headline, rest = _shorten(sentence)
    more = f"{numbers.counted(len(alerts) - 1, 'more open alert')}." if len(alerts) > 1 else ""
    now = f"{found.headline}." if found is not None and is_open else ""
    details = " ".join(part for part in (rest, more, now) if part)
    return WatchStatus(sign_of("alert"), sentence, headline, details, alert.opened_at, is_open)


def _shorten(sentence: str) -> tuple[str, str]:
    """Split a text into its first sentence without parentheses, and the texts of the parentheses with the rest."""
    first, rest = split_first_sentence(sentence)
    headline, details = split_brackets(first)
    return headline.rstrip("."), " ".join(filter(None, (f"{' · '.join(details)}." if details else "", rest)))


def _describe_judged(rounds: Sequence["WatchRound"]) -> WatchStatus:
    worst = min(rounds, key=lambda round_: GRAVEST.index(round_.outcome))
    sentence = numbers.unbroken(worst.sentence or f"{worst.new} was judged against {worst.old} on {worst.version}.")
    short = SHORT.get(worst.outcome, "").format(model=worst.version, new=worst.new, old=worst.old)
    headline, rest = (short, sentence) if short else _shorten(sentence)
    return WatchStatus(sign_of(worst.outcome), sentence, headline, rest, worst.judged_at, False, worst.run_id)


def _describe_measured(round_: "WatchRound", *, ended: int, of: int) -> WatchStatus:
    judged = f" ({ended} of {numbers.counted(of, 'model')} judged)" if of > 1 else ""
    result = str(round_.sentence or "")
    sentence = f"{round_.old} → {round_.new} of {round_.version}{judged}. {result}".strip()
    state = _find_state(round_)
    headline = f"{UNDER_WAY[state]} {round_.new} against {round_.old} on {round_.version}{judged}"
    return WatchStatus(sign_of(state), sentence, headline, result, None, True, round_.run_id)


def _find_state(round_: "WatchRound") -> str:
    """Return the outcome of a judged round, else its state; `queued` where no node has begun its run yet."""
    if round_.state == "judged":
        return str(round_.outcome)
    return "queued" if round_.state == "measuring" and not getattr(round_, "has_begun", True) else str(round_.state)


def make_rounds_table(rounds: Iterable["WatchRound"]) -> Table:
    return Table.of("rounds", "Rounds of this watch", ROUND_COLUMNS, rounds)


def _describe_pinned(round_: "WatchRound") -> str:
    return f", beside {round_.pinned}" if round_.pinned not in (round_.old, round_.new) else ""


def link_runs(round_: "WatchRound") -> Entry:
    """Make the entry that links to the round's run, followed by the number of the run that measured it again; “none”
    before there is a run."""
    known = [run_id for run_id in (round_.run_id, round_.confirming_id) if run_id]
    if not known:
        return Entry("none")
    if len(known) == 1:
        return link_run(known[0])
    how = "being confirmed" if round_.state != "judged" else CONFIRMATIONS.get(round_.outcome, "measured again")
    return link_run(known[0], soft=f"{how} by run {known[1]}")


def list_kinds() -> list[tuple[str, Sign]]:
    return [(key, kind.title) for key, kind in KINDS.items()]


def name_noisy_kinds() -> str:
    return numbers.listed([kind.title.word for kind in KINDS.values() if kind.is_noisy])

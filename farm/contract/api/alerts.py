"""Watches, alerts and investigations, as the API tells of them."""

from datetime import datetime

from pydantic import Field

from farm.contract.api.answer import Answer


class InvestigationOut(Answer):
    """`state`: waiting, measuring, answered or failed. A bisection's answer names `first_bad`, `last_good`, `suspects`,
    the `ratio` with its interval, `turns` and `minutes`; a work-around's the session options and their verdict."""

    id: int = Field(description="its number")
    alert: int = Field(description="the alert it is about")
    kind: str = Field(description="since_when (a bisection) or work_around")
    state: str = Field(description="waiting, measuring, answered or failed")
    sentence: str = Field(description="the answer, or the progress")
    run: int | None = Field(description="the run that measures for it now; null: none")
    asked: dict[str, object] | None = Field(description="what was asked for")
    steps: list[dict[str, object]] = Field(description="what was measured so far, in order")
    answer: dict[str, object] | None = Field(description="the result, for programs; null: none yet")
    started_at: datetime = Field(description="when it was asked for")
    ended_at: datetime | None = Field(description="when it ended; null: it goes on")


class SymptomOut(Answer):
    """One change of one series, measured in `run` between the cells `baseline` and `cell`."""

    kind: str = Field(
        description="what changed: latency, session, first, memory, accuracy, outputs, placement or failure"
    )
    node: str = Field(default="", description="the machine that measured it")
    series: str = Field(description="the line of the same cell over releases, as trends name it")
    label: str = Field(description="the cell in words")
    text: str = Field(description="what was seen, as one sentence")
    size: float | None = Field(description="by how much, where it has a size: 0.34 is 34 % slower")
    run: int | None = Field(description="the run that measured it")
    baseline: str = Field(description="the cell it is compared with, as the run names it")
    cell: str = Field(description="the cell that changed, as the run names it")
    explanation: str = Field(description="the cause, where it is known; empty: not known")
    resolved_in: str = Field(description="the release that resolved it; empty: still present")


class AlertEventOut(Answer):
    id: int = Field(description="the event's number; later ones are larger")
    at: datetime = Field(description="when it happened")
    kind: str = Field(description="what happened, for programs")
    text: str = Field(description="what happened, for people")
    by: str | None = Field(description="who did it; null: the farm")
    facts: dict[str, object] = Field(description="values that belong to it")


class AlertOut(Answer):
    """`release`: what alerts are grouped under; `good` was still well, it was found in `bad`."""

    id: int = Field(description="the alert's number")
    url: str = Field(description="its page")
    state: str = Field(description="open, acknowledged, resolved, invalid or infra")
    is_snoozed: bool = Field(description="whether it is snoozed")
    sentence: str = Field(description="what changed, in one sentence")
    team: str = Field(description="the team whose models it is about")
    watch: int = Field(description="the watch that found it")
    watch_name: str = Field(description="that watch's name")
    model: str = Field(description="the model's name")
    version: int = Field(description="the number of the model's version")
    node: str = Field(description="the machine that it was found on first; each symptom names its own")
    hardware: str = Field(description="what that machine is")
    distribution: str = Field(description="the package of the runtime, such as onnxruntime")
    release: str = Field(description="the release that alerts are grouped under")
    good: str = Field(description="the last good release")
    bad: str = Field(description="the release in which it was found")
    first_bad: str = Field(description="the release that a bisection named; empty: none did")
    began: str = Field(default="", description="since when, in words, no more than was measured")
    moved: list[str] = Field(
        description="of two packages that are watched together, those whose release changed; empty: one is watched"
    )
    assignee: str | None = Field(description="the assignee; null: nobody")
    note: str = Field(description="the latest note")
    snoozed_until: datetime | None = Field(description="snoozed until; null: not snoozed, or until a release")
    snoozed_for: str = Field(description="the release it is snoozed until; empty: none")
    resolved_in: str = Field(description="the release that resolved all of it")
    opened_at: datetime = Field(description="when it was opened")
    changed_at: datetime = Field(description="when something was last done about it")
    symptoms: list[SymptomOut] = Field(description="each change that it is made of")


class AlertPageOut(AlertOut):
    investigations: list[InvestigationOut] = Field(description="bisections and work-arounds, newest first")
    events: list[AlertEventOut] = Field(description="what was done about it, in order")


class NamedOut(Answer):
    id: int = Field(description="its number")
    name: str = Field(description="its name")


class WatchOut(Answer):
    """`problem`: why the last round could not be started. `next_at`: of the schedule."""

    id: int = Field(description="the watch's number")
    url: str = Field(description="its page")
    name: str = Field(description="its name")
    team: str = Field(description="the team that it belongs to")
    is_active: bool = Field(description="whether it is active")
    models: list[NamedOut] = Field(description="what it watches")
    label: str = Field(description="or every model with this label; empty: those named")
    matrix: dict[str, object] = Field(description="what is measured, without `runtime`")
    rule: dict[str, object] = Field(description="by how much a change alerts, and which kinds do")
    distribution: str = Field(description="the package of the runtimes")
    reference: str = Field(description="the pinned release")
    on_release: bool = Field(description="whether a new release of the runtime is measured")
    on_version: bool = Field(description="whether a new version of a model is measured")
    with_prereleases: bool = Field(description="whether release candidates and development builds count as releases")
    compares_versions: bool = Field(
        default=False, description="whether each new version is measured beside the one before it, in the same blocks"
    )
    schedule: str = Field(description="five fields of cron, UTC; empty: none")
    next_at: datetime | None = Field(description="when the schedule is due next; null: there is none")
    channels: list[NamedOut] = Field(description="the channels it notifies")
    problem: str = Field(description="why the last round could not be started; empty: it could")
    created_by: str | None = Field(description="who made it; null: a deleted user")
    created_at: datetime = Field(description="when it was made")


class RoundOut(Answer):
    """`old` is compared with `new`, in one block with `pinned`; `run` measures, `confirming` shows it again."""

    id: int = Field(description="the round's number")
    watch: int = Field(description="the watch's number")
    model: str = Field(description="the model's name")
    version: int = Field(description="the number of the model's version")
    cause: str = Field(description="release, version, schedule or call")
    old: str = Field(description="the release that is compared with `new`")
    new: str = Field(description="the release that is judged")
    pinned: str = Field(description="the reference measured in the same block")
    state: str = Field(description="the state of the round")
    outcome: str = Field(description="the result; empty: none yet")
    sentence: str = Field(description="that in words")
    compared: int = Field(description="how many pairs of cells were compared")
    run: int | None = Field(description="the run that measures; null: none yet")
    confirming: int | None = Field(description="the run that shows a finding again; null: none was needed")
    created_at: datetime = Field(description="when it was opened")
    judged_at: datetime | None = Field(description="when it was judged; null: not yet")

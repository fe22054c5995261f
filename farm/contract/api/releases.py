"""A release's report card, as the API tells of it."""

from datetime import datetime

from pydantic import Field

from farm.contract.api.answer import Answer


class ReleasePlaceOut(Answer):
    """One model on one node. `ratio` and its interval: new / old of the latency of the point that stands for all."""

    node: str = Field(description="the machine that measured it")
    verdict: str = Field(
        description="in words: slower, faster, equal or undecided with the size of the change, wrong outputs, placed "
        "differently, fails, or another kind of change"
    )
    kind: str = Field(description="the kind of change that somebody must look at; empty: none was found")
    text: str = Field(description="what was seen, as one sentence; empty where nothing is to be said")
    ratio: float | None = Field(description="new / old; null: no figures")
    ci_low: float | None = Field(description="the low end of its interval; null: none")
    ci_high: float | None = Field(description="its high end; null: none")
    smallest_detectable: float | None = Field(
        description="the smallest change that would have been seen at every point, as a fraction; null: not known"
    )
    points: int = Field(description="how many settings were measured with both releases")
    run: int | None = Field(
        description="the run that measured the point that stands for all; null: an alert alone says it"
    )
    cell: str = Field(description="its cell, as the run names it")
    alert: int | None = Field(description="the alert about it; null: there is none")


class ReleaseModelOut(Answer):
    id: int = Field(description="the model's number")
    name: str = Field(description="the model's name")
    is_clean: bool = Field(description="whether it was measured, and nothing slower or wrong was found on any node")
    nodes: list[ReleasePlaceOut] = Field(description="node by node; empty: not measured")


class ReleaseWorkAroundOut(Answer):
    alert: int = Field(description="the alert whose change it takes back")
    model: str = Field(description="the model's name")
    sentence: str = Field(description="how much of the change it removes")
    code: str = Field(description="the lines of Python that were measured")


class ReleaseOpenOut(Answer):
    model: str = Field(description="the model's name")
    run: int | None = Field(description="the run that measures it; null: it was not started yet")


class ReleaseCardOut(Answer):
    """Models × nodes of your teams, beside one older release."""

    url: str = Field(description="its page")
    release: str = Field(description="the release, with its distribution")
    against: str | None = Field(description="the older one; null: none was measured beside it")
    others: list[str] = Field(description="older versions that it may be compared with")
    headline: str = Field(description="the answer in one line")
    because: str = Field(description="what follows it; may be empty")
    models: list[ReleaseModelOut] = Field(description="each model that was measured with it, or is watched")
    work_arounds: list[ReleaseWorkAroundOut] = Field(description="what was measured to take changes back")
    open: list[ReleaseOpenOut] = Field(description="what is still being measured")
    ends_at: datetime | None = Field(
        description="until when, by the queue's forecast; null: nothing is, or nobody can tell"
    )
    ends_at_least: datetime | None = Field(
        default=None, description="where nobody can tell, as while another program has a machine: not before then"
    )

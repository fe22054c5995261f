"""Searches for the settings to ship, as the API tells of them."""

from datetime import datetime

from pydantic import Field

from farm.contract.api.answer import Answer


class RaceOut(Answer):
    """The race on one kind of hardware."""

    hardware: str = Field(description="a tag or node:NAME; empty: what its providers run on")
    state: str = Field(description="waiting, measuring, answered, failed or cancelled")
    sentence: str = Field(description="the answer, or the best so far; empty: nothing is measured yet")
    doing: str = Field(description="what it measures now, or waits for; empty: it is over")
    run: int | None = Field(description="the run that measures for it now; null: none")
    runs: list[int] = Field(description="the runs that are over, in order")
    minutes: float = Field(description="of machines, so far")
    answer: dict[str, object] | None = Field(description="the document `onnxfarm.find/1`; null: none yet")


class FindOut(Answer):
    """A search, with a race for each kind of hardware."""

    id: int = Field(description="its number")
    url: str = Field(description="its page")
    version: int = Field(description="the version of the model")
    goal: str = Field(description="latency, throughput, processor-time or memory")
    is_open: bool = Field(description="whether a race goes on")
    sentence: str = Field(description="over all hardware, once each race has ended; of a single race its own")
    everywhere: dict[str, object] | None = Field(
        description="settings within 5 % of the best on every kind of hardware; null: none, or a single kind"
    )
    races: list[RaceOut] = Field(description="one a kind of hardware, in the order that was asked for")
    started_at: datetime = Field(description="when it was asked for")

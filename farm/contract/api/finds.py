"""Searches for the settings to ship, as they are asked for, and as the API tells of them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from farm.contract.api.answer import Answer
from farm.contract.document_find import MAX_MINUTES, Goal


class FindOrder(BaseModel):
    """Budgets that are left out are none. `space`: a matrix whose points compete, the first of them in use today."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, le=2**62, description="the version to measure, by its number on the farm")
    goal: Goal = Field(default="latency", description="what is to be best")
    minutes: float = Field(default=10.0, gt=0, le=MAX_MINUTES, description="of each kind of hardware, about")
    space: dict[str, object] | None = Field(
        default=None, description="a matrix; left out: the usual space of the providers"
    )
    providers: list[str] = Field(
        default=["cpu"], min_length=1, max_length=16, description="of the usual space, by their short names"
    )
    beside: dict[str, object] = Field(
        default={}, description="axes and settings that all of the usual space has, such as a batch or a tolerance"
    )
    hardware: list[str] = Field(
        default=[], max_length=16, description="a race each: tags or node:NAME; left out: what the providers run on"
    )
    max_p50_ms: float | None = Field(default=None, gt=0, le=1e7, description="budget of the median latency")
    max_p99_ms: float | None = Field(default=None, gt=0, le=1e7, description="budget of the 99th percentile")
    max_memory_bytes: float | None = Field(default=None, gt=0, le=2**62, description="budget of the peak memory")
    min_accuracy: float | None = Field(default=None, gt=0, le=1, description="budget on the version's labelled data")

    @property
    def budgets(self) -> dict[str, float | None]:
        return self.model_dump(include={"max_p50_ms", "max_p99_ms", "max_memory_bytes", "min_accuracy"})


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

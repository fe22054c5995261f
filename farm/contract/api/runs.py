"""Runs, and plans that are not made yet, as the API tells of them."""

from datetime import datetime

from pydantic import Field

from farm.contract.api.answer import Answer


class OpenPlanOut(Answer):
    """A plan of many points that is not made yet."""

    id: int = Field(description="its number on the farm")
    state: str = Field(description="pending: it waits for a worker; making")
    points: int = Field(description="how many points the matrix has")
    url: str = Field(description="the address to ask again, which answers 200 with the plan once it is made")


class ProgressOut(Answer):
    """`share`: 0–1 by rounds; `minutes_left`: null: unknown.

    Where `waiting` is not empty, they count from when what it waits for is over.
    """

    cells_done: int = Field(description="cells that have ended, whichever way, of those that were not refused")
    cells_planned: int = Field(description="cells that the run has, without those that were refused unless all were")
    cells: dict[str, int] = Field(description="how many cells are in each state")
    blocks: dict[str, int] = Field(description="how many blocks are in each state")
    rounds: int = Field(description="rounds that were measured")
    rounds_most: int = Field(description="rounds that may be measured at most")
    share: float = Field(description="0 to 1, by rounds")
    block: str = Field(description="what is being done now, in words")
    waiting: str = Field(description="why nothing is being measured, in words; empty while something is")
    minutes_left: float | None = Field(
        description="of measuring, at the pace so far; while it waits, from when that is over; null: unknown"
    )
    is_slowed: bool = Field(
        default=False, description="whether other programs lengthen it, so that it may take longer than `minutes_left`"
    )
    begins_in_minutes: float | None = Field(
        default=None, description="while it waits in the queue, minutes until what is ahead of it ends; null: unknown"
    )
    begins_in_minutes_at_least: float | None = Field(
        default=None,
        description="while another program has the machine, so that nobody can tell when it begins: not before so many",
    )
    ends_in_minutes: float | None = Field(
        default=None, description="while it waits in the queue, minutes until all of it is measured; null: unknown"
    )


class RunOut(Answer):
    """`state`: planned, running, finished; `outcome`: complete, partial, refused or cancelled once finished."""

    id: int = Field(description="the run's number")
    url: str = Field(description="its page")
    state: str = Field(description="planned, running or finished")
    outcome: str = Field(description="complete, partial, refused or cancelled once finished; empty before")
    status: str = Field(
        default="",
        description="the word that pages show: preparing, queued, measuring or settling, then the outcome",
    )
    sentence: str = Field(description="its status, in one sentence")
    headline: str = Field(description="its result, in one sentence; empty: none yet")
    model: str = Field(description="the model's name")
    version: int = Field(description="the number of the model's version")
    version_id: int = Field(description="the version's number on the farm")
    team: str = Field(description="the team that it belongs to")
    requested_by: str = Field(description="who started it")
    reason: str = Field(description="watch, confirmation, bisection or work-around; empty: a person asked for it")
    budget: str = Field(description="glance, quick, standard or precise")
    seed: int = Field(description="decides the order of arms and what inputs are made of")
    minutes: float = Field(description="what the plan expected")
    cell_count: int = Field(description="how many cells it has")
    revision: int = Field(description="grows with every change, for whoever polls")
    created_at: datetime = Field(description="when it was asked for")
    started_at: datetime | None = Field(description="when its first block was claimed; null: not yet")
    finished_at: datetime | None = Field(description="when it ended; null: it goes on")
    progress: ProgressOut = Field(description="how far it is")

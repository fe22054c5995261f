"""Cells that run for minutes without a pause: their latency point by point, and the energy of an inference."""

from typing import Annotated, Literal

from pydantic import Field

from farm.contract.base import Message
from farm.contract.reasons import Reason

Positive = Annotated[float, Field(gt=0)]
# limit of points in a curve; half an hour has points of a minute, short curves have shorter points
MAX_POINTS = 120
MAX_SUSTAINED_S = 1800.0


class CurvePoint(Message):
    """One interval of a curve, in seconds from the curve's beginning. `energy_mj`: millijoules per inference."""

    at_s: Annotated[float, Field(ge=0)]
    span_s: Positive
    n: Annotated[int, Field(ge=1)]
    p50_ms: Positive
    p90_ms: Positive
    energy_mj: Positive | None = None


class CurveReport(Message):
    """The sustained pass of an arm: one process that ran for minutes, after the rounds."""

    kind: Literal["curve"] = "curve"
    arm: Annotated[int, Field(ge=0)]
    reason: Reason | None = None
    points: Annotated[tuple[CurvePoint, ...], Field(max_length=MAX_POINTS)] = ()


class Energy(Message):
    """Energy of one inference, or why there is none. `mj`: millijoules. `text`: which meter, or what is missing."""

    mj: Positive | None = None
    text: Annotated[str, Field(max_length=500)]

"""The differences between two outputs, as every comparison of outputs reports them.

`is_same`: no element differs at all, and none is NaN or infinite. `is_nan_everywhere`: all elements of both outputs are
NaN.
"""

from typing import Annotated

from pydantic import Field

from farm.contract.base import Message

NonNegative = Annotated[float, Field(ge=0)]
# the largest integer that every reader of JSON and every database holds exactly; no count is larger
Count = Annotated[int, Field(ge=0, le=2**53)]


class OutputParity(Message):
    """One output against the reference. `violations`: elements beyond tolerance; NaN and infinity are counted apart."""

    name: str
    dtype: str
    shape: tuple[Count, ...]
    reference_shape: tuple[Count, ...] | None = None
    max_abs: NonNegative | None = None
    max_rel: NonNegative | None = None
    rmse: NonNegative | None = None
    cosine: float | None = None
    top1_agreement: Annotated[float, Field(ge=0, le=1)] | None = None
    nan_count: Count = 0
    inf_count: Count = 0
    # NaN and infinity that the reference has in the same places do not count as violations
    violations: Count = 0
    elements: Count = 0
    # the name of the other output, where it differs from `name`
    reference_name: Annotated[str | None, Field(exclude_if=lambda name: name is None)] = None

    @property
    def is_same(self) -> bool:
        return self.max_abs == 0.0 and not (self.violations or self.nan_count or self.inf_count)

    @property
    def is_nan_everywhere(self) -> bool:
        has_shape = self.shape == self.reference_shape
        return has_shape and 0 < self.elements == self.nan_count and not self.violations

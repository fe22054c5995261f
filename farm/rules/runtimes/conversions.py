"""Says how far a model's operator set can be converted, and what stops it there."""

from farm.contract.base import Message


class OpsetReach(Message):
    """The oldest and newest default operator set that onnx's converter makes of a model, and what stops it there.

    Where a limit is None it is not known, and a conversion is tried when somebody asks for it.
    """

    lowest: int | None = None
    below: str = ""
    highest: int | None = None
    above: str = ""

    def find_obstacle(self, wanted: int) -> str:
        """Return what stops the conversion to this operator set, to follow a colon; empty where nothing known does."""
        if self.highest is not None and wanted > self.highest:
            return self.above
        if self.lowest is not None and wanted < self.lowest:
            return self.below
        return ""


def explain_stop(obstacle: str, *, current: int | None, wanted: int) -> str:
    return f"Opset {current} cannot be converted to {wanted}: {obstacle}. Export the model with opset {wanted} instead."

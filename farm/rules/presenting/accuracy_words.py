"""What a terminal says of a cell's accuracy. Needs nothing but the document: the client has no numpy."""

from farm.contract import document_cells as doc_cells
from farm.contract.evaluation import ACCURACY_LEVEL


def is_worse(one: doc_cells.Accuracy) -> bool:
    """Whether the paired test shows that the cell does worse than its FP32 cell."""
    if one.p is None or one.difference is None or one.p >= 1 - ACCURACY_LEVEL:
        return False
    return one.difference < 0 if one.higher_is_better else one.difference > 0

"""What a terminal says of a cell's accuracy. Needs nothing but the document: the client has no numpy."""

from farm.contract import document_cells as doc_cells
from farm.contract.evaluation import ACCURACY_LEVEL


def is_worse(judged: doc_cells.Accuracy) -> bool:
    """Whether the paired test shows that the cell does worse than its FP32 cell."""
    if judged.p is None or judged.difference is None or judged.p >= 1 - ACCURACY_LEVEL:
        return False
    return judged.difference < 0 if judged.higher_is_better else judged.difference > 0

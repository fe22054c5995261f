"""Compares answers with those that the same session gave to the same inputs while nothing else ran."""

import numpy as np

from worker.runner import parity
from worker.runner.arrays import Arrays
from worker.runner.order import Order

# more bytes of answers are neither kept nor compared
MAX_BYTES = 256 << 20

Outputs = dict[str, object]


class Answers:
    """The first answer to each set of inputs, with which later answers are compared. Sets are known by their numbers.

    Call `keep_first` with a first answer, and `compare_alone` with a repeated one, both given while nothing else runs.
    If these two differ, the model is not deterministic, and `differing_count` is None.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._answers: dict[int, Arrays] = {}
        self._bytes = 0
        self._is_repeatable = True
        self._compared: set[int] = set()
        self._differing: set[int] = set()

    def keep_first(self, number: int, outputs: Outputs) -> None:
        """Keep the first answer to a set, unless all kept answers would become larger than MAX_BYTES."""
        arrays = {name: value for name, value in outputs.items() if isinstance(value, np.ndarray)}
        self._bytes += sum(value.nbytes for value in arrays.values())
        if self._bytes <= MAX_BYTES:
            self._answers[number] = arrays

    def compare_alone(self, number: int, outputs: Outputs) -> None:
        self._is_repeatable &= not self._differ(number, outputs)

    def compare(self, number: int, outputs: Outputs) -> None:
        """Compare an answer that was given under load with the first one to the same set, if that was kept.

        They differ where an element is beyond the order's tolerance. `differing_count` counts the sets that differ.
        """
        if number in self._answers:
            self._compared.add(number)
            if self._differ(number, outputs):
                self._differing.add(number)

    @property
    def differing_count(self) -> float | None:
        """How many sets got another answer under load than at first; None where none was compared.

        None also where `compare_alone` found a difference, because the model is not deterministic then.
        """
        return float(len(self._differing)) if self._is_repeatable and self._compared else None

    def _differ(self, number: int, outputs: Outputs) -> bool:
        compared = (
            parity.compare_output(name, outputs.get(name), value, **self._order.find_tolerance(name))
            for name, value in self._answers.get(number, {}).items()
        )
        return any(output.get("violations") for output in compared)

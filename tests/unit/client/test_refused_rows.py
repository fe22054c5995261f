"""Refused cells on the last screen."""

import re

from farm.contract.reasons import CellStatus, Reason, ReasonCode
from tests.unit.client.test_screen import cell, document, screen


def test_what_was_refused_is_told_once_with_its_reason_and_has_no_row() -> None:
    why = Reason(code=ReasonCode.PROVIDER_NOT_IN_BUILD, text="CUDA is not in this build.")
    empty = {"status": CellStatus.REFUSED, "reason": why, "p50_ms": None, "p50_ci_ms": None, "throughput": None}
    asked = {"provider": "CUDAExecutionProvider", "active_providers": [], **empty}
    refused = [cell(f"c{number}", batch=number, **asked) for number in range(2, 42)]
    shown = screen(document(cells=[cell("c1"), *refused], comparisons=[]), width=120).splitlines()
    assert [line.split()[0] for line in shown if re.match(r"c\d", line)] == ["c1"]
    (told,) = [line for line in shown if "refused" in line]
    assert "40 cells (c2, " in told
    assert "and 32 more), CUDA: " in told

"""What a trace says of the memory of operators, as an agent reads it from a runner that may say anything."""

from typing import Any

import pytest
from pydantic import ValidationError

from farm.contract.reports import MAX_BYTES, Operator
from worker.agent.measurement.traces import Row
from worker.runner import profile

ROW: dict[str, Any] = {
    "path": (), "name": "a", "op_type": "Add", "provider": "P", "index": 0, "time_us": 1.0, "calls": 1
}  # fmt: skip
OPERATOR: dict[str, Any] = {"node": "a", "op_type": "Add", "provider": "P", "time_us": 1.0}


@pytest.mark.parametrize(("kind", "known"), [(Row, ROW), (Operator, OPERATOR)])
@pytest.mark.parametrize("size", [-1, MAX_BYTES + 1, 1.5, "much"])
def test_a_size_that_no_operator_can_have_is_refused(kind: type[Row | Operator], known: dict[str, Any], size: object):
    with pytest.raises(ValidationError):
        kind.model_validate({**known, "memory_bytes": size})


@pytest.mark.parametrize("size", [0, MAX_BYTES])
def test_any_other_size_is_taken(size: int) -> None:
    for kind, known in ((Row, ROW), (Operator, OPERATOR)):
        assert kind.model_validate({**known, "memory_bytes": size}).memory_bytes == size


def test_an_older_farm_gets_no_key_that_it_does_not_know_where_there_is_no_figure() -> None:
    assert "memory_bytes" not in Operator.model_validate(OPERATOR).model_dump(mode="json")
    assert Row.model_validate(ROW).memory_bytes is None


def test_runner_and_contract_have_one_bound() -> None:
    assert profile.MAX_BYTES == MAX_BYTES

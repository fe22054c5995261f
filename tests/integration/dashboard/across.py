"""One model on three kinds of hardware: the processors of two nodes, and OpenVINO on one of them. Made-up figures."""

from typing import Any

from farm.accounts.models import User
from farm.registry.models import Version
from farm.runs.models import Run
from tests.integration.dashboard import rows

OPENVINO = "OpenVINOExecutionProvider"
PLAIN: dict[str, Any] = {"runtime": ["1.31.1"], "batch": [1], "threads": [1]}


def measured_across(version: Version, owner: User) -> list[Run]:
    """The runs, in this order: bench-1 at 0.5 ms (fp32) and 0.25 (int8), bench-2 at 2, OpenVINO on bench-1 at 0.475."""
    team = version.model.team
    first = rows.make_node(team, owner, providers=(rows.CPU, OPENVINO))
    second = rows.make_node(team, owner, name="bench-2")
    openvino = {"runtime": ["onnxruntime-openvino==1.24.1"], "provider": ["openvino"]}
    return [
        rows.finished_run(
            version, first, owner, matrix={"matrix": {**PLAIN, "precision": ["fp32", "int8-dynamic"]}}, slow={}
        ),
        rows.finished_run(version, second, owner, matrix={"matrix": PLAIN}, slow={"onnxruntime==1.31.1": 4.0}),
        rows.finished_run(
            version, first, owner, matrix={"matrix": {**PLAIN, **openvino}}, slow={openvino["runtime"][0]: 0.95}
        ),
    ]

# acme_scenarios.py
from farm.rules.cells.outside_metrics import Measure
from farm.rules.cells.outside_scenarios import Entry, Option

PAUSED = Entry(
    name="paused",
    module="acme_paused",
    label="with pauses between inferences",
    options={"ms": Option(usual=5.0, least=1.0, most=100.0)},
    launch_s=1.0,
    metrics=(Measure("paused_worst_ms", "slowest inference", "ms", better="less", by="ratio", margin=0.1),),
)

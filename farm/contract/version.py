"""The contract between the farm, its nodes and its clients: its version, and the names of tasks and queues.

History of CONTRACT_VERSION
1  first version: claim, heartbeat, report, artifacts over HTTP; block hints over Celery.
   2026-11-22, compatible both ways: a CheckReport has no `repeat_command` any more, and one that an older node sends is
   dropped; of `packages` only names and versions are kept; the farm writes the `command` of a divergence itself.
   2026-11-22, the farm first: a workload says how inputs are made (`inputs`, left out where nothing is said), and a
   TraceReport how long a whole inference took (`run_us`), of which operators have the medians.
   2026-11-22, compatible both ways: CheckReport and Sample have `metrics`, figures of metrics without a field of their
   own, which are sent only where there are some.
2  2026-11-22: a sample's processor time (`cpu_p50_ms`), a block's promise (`promised_s`) and the round that ended by it
   (`is_last`), the budget `glance`, what a node does (`doing`). Nodes of version 1 are told so and get no blocks until
   they are upgraded.
   2026-11-22, compatible both ways: a block's order may ask that rounds are traced (`is_tracing_rounds`), of nodes that
   say with their claim that they understand it (`X-Understands`) alone; a Sample then has `nodes_us`, an Operator
   `reads`.
   2026-11-23, compatible both ways: a workload may say its `scenario`, which is left out where it is `single`, to nodes
   that say with their claim that they understand `scenarios` alone.
   2026-11-23, the farm first: of a launch that generates a TraceReport has the prompt apart (`prompt`) and
   `cache_copies`, a Sample `gaps` and `forced`.
   2026-11-23, compatible both ways: an arm's order may name `prompts`, to nodes that say with their claim that they
   understand `prompts` alone; a recipe's precision may be `int4`, to nodes that understand `int4`.
   2026-11-26, compatible both ways: a session may say its `call`, which is left out where it is `bound`, to nodes that
   say with their claim that they understand `calls` alone.
   2026-11-23, the farm first: an operator of a trace may say its `memory_bytes`.
   2026-11-22, the farm first: facts may say that the sandbox is a browser's (`browser`); `runtimes` and `runtime-files`
   hand out what browsers load.
   2026-11-26, the farm first: a hello says what each runtime was seen to load (`loads`).
   2026-11-26, compatible both ways: an arm's order may name the `wheels` of a runtime that is on an index of the farm's
   admin, to nodes that say with their claim that they understand `indexes` alone.
"""

CONTRACT_VERSION = 2
# Nodes of this version or a later one get blocks. Nodes are upgraded after the farm, so it should be the version before
# CONTRACT_VERSION; but verdicts need the processor time, which nodes of version 1 do not send.
OLDEST_VERSION = 2


def is_supported(version: int) -> bool:
    return OLDEST_VERSION <= version <= CONTRACT_VERSION


def describe_supported_versions() -> str:
    return str(CONTRACT_VERSION) if OLDEST_VERSION == CONTRACT_VERSION else f"{OLDEST_VERSION} to {CONTRACT_VERSION}"


# the Celery task that carries {block, attempt} to a node by the queues that the functions below name
MEASURE_TASK = "onnxfarm.measure_block"
# queues of the farm's workers: for slow work, for work that must not wait, for blocks to settle, and for messages
PREPARE_QUEUE = "prepare"
TICK_QUEUE = "ticks"
SETTLE_QUEUE = "settle"
DELIVERY_QUEUE = "tell"


def name_tag_queue(tag: str) -> str:
    return f"tag.{tag}"


def name_node_queue(node_id: str) -> str:
    return f"node.{node_id}"

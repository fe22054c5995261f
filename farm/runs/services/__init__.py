from farm.runs.services.bell import ring, ring_again, tell_waiting_runs
from farm.runs.services.clearing import clear_unnamed
from farm.runs.services.concluding import add_leads, conclude_runs
from farm.runs.services.continuing import cancel_run, more_rounds
from farm.runs.services.diverging import accept_part, ask_divergence
from farm.runs.services.drawing import read_trace, timeline_of
from farm.runs.services.feeding import release_ready_blocks
from farm.runs.services.leasing import claim_block, heartbeat, held_attempt, held_by_token
from farm.runs.services.planning import must_be_meant, plan_run, read_matrix
from farm.runs.services.reporting import accept_report
from farm.runs.services.starting import start_run
from farm.runs.services.sweeping import sweep
from farm.runs.services.tracing import accept_trace

__all__ = [
    "accept_part",
    "accept_report",
    "accept_trace",
    "add_leads",
    "ask_divergence",
    "cancel_run",
    "claim_block",
    "clear_unnamed",
    "conclude_runs",
    "heartbeat",
    "held_attempt",
    "held_by_token",
    "more_rounds",
    "must_be_meant",
    "plan_run",
    "read_matrix",
    "read_trace",
    "release_ready_blocks",
    "ring",
    "ring_again",
    "start_run",
    "sweep",
    "tell_waiting_runs",
    "timeline_of",
]

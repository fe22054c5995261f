from farm.runs.services.bell import ring, ring_again, tell_waiting_runs
from farm.runs.services.continuation import cancel_run, more_rounds
from farm.runs.services.deposits import accept_compiled, accept_trace
from farm.runs.services.divergences import accept_part, ask_divergence
from farm.runs.services.endings import clear_unnamed
from farm.runs.services.leases import claim_block, heartbeat, held_attempt, held_by_token
from farm.runs.services.recovery import sweep
from farm.runs.services.reports import accept_report
from farm.runs.services.retention import retain, set_retention
from farm.runs.services.run_plans import made_plan, make_plan, must_be_meant, plan_for, plan_run, read_matrix
from farm.runs.services.settlement import add_leads, conclude_runs, settle
from farm.runs.services.submission import release_ready_blocks, start_run
from farm.runs.services.timelines import read_trace, timeline_of

__all__ = [
    "accept_compiled",
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
    "made_plan",
    "make_plan",
    "more_rounds",
    "must_be_meant",
    "plan_for",
    "plan_run",
    "read_matrix",
    "read_trace",
    "release_ready_blocks",
    "retain",
    "ring",
    "ring_again",
    "set_retention",
    "settle",
    "start_run",
    "sweep",
    "tell_waiting_runs",
    "timeline_of",
]

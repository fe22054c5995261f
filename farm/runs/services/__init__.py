from farm.runs.services.bell import ring, ring_again, tell_waiting_runs
from farm.runs.services.cleanup import clear_unnamed
from farm.runs.services.compiled_models import accept_compiled
from farm.runs.services.conclusion import add_leads, conclude_runs
from farm.runs.services.continuation import cancel_run, more_rounds
from farm.runs.services.divergences import accept_part, ask_divergence
from farm.runs.services.leases import claim_block, heartbeat, held_attempt, held_by_token
from farm.runs.services.plan_orders import made_plan, make_plan, plan_for
from farm.runs.services.readiness import release_ready_blocks
from farm.runs.services.recovery import sweep
from farm.runs.services.reports import accept_report
from farm.runs.services.retention import retain, set_retention
from farm.runs.services.run_plans import must_be_meant, plan_run, read_matrix
from farm.runs.services.settlement import settle
from farm.runs.services.submission import start_run
from farm.runs.services.timelines import read_trace, timeline_of
from farm.runs.services.traces import accept_trace

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

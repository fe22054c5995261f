from farm.runs.services.deposits import accept_compiled, accept_trace
from farm.runs.services.divergences import accept_part, ask_divergence
from farm.runs.services.endings import clear_unnamed
from farm.runs.services.hints import send_due_hints, send_hint, touch_waiting_runs
from farm.runs.services.leases import claim_block, heartbeat, held_attempt, held_by_token
from farm.runs.services.recovery import sweep
from farm.runs.services.reports import accept_report
from farm.runs.services.retention import retain, set_retention
from farm.runs.services.run_plans import made_plan, make_plan, must_be_meant, plan_for, plan_run, read_matrix
from farm.runs.services.settlement import add_leads, conclude_runs, settle
from farm.runs.services.submission import cancel_run, more_rounds, release_ready_blocks, start_run
from farm.runs.services.timelines import read_trace, timeline_of

from farm.runs.services.divergences import accept_part, ask_divergence
from farm.runs.services.endings import remove_old_parts
from farm.runs.services.hints import send_due_hints, send_hint, touch_waiting_runs
from farm.runs.services.leases import claim_block, find_claim, find_claim_by_token, heartbeat
from farm.runs.services.node_files import accept_compiled, accept_trace
from farm.runs.services.recovery import sweep
from farm.runs.services.reports import accept_report
from farm.runs.services.retention import retain, set_retention
from farm.runs.services.run_plans import check_plan, find_plan_order, make_plan, plan_or_order, plan_run, read_matrix
from farm.runs.services.settlement import backfill_leads, conclude_runs, settle
from farm.runs.services.submission import cancel_run, measure_more_rounds, release_ready_blocks, start_run
from farm.runs.services.timelines import find_or_order_timeline, read_trace

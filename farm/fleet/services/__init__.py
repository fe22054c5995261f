from farm.fleet.services.enrolment import approve, enrol, grant_secret, invite, log_refusal
from farm.fleet.services.health import (
    change_settings,
    count_block_outcome,
    drain,
    quarantine,
    quarantine_nodes_without_owner,
    resume,
    revoke,
)
from farm.fleet.services.lendings import agree, decline, end_lapsed_lendings, share
from farm.fleet.services.noise import store_null_estimates
from farm.fleet.services.presence import clear_doing, make_welcome, mark_silent_nodes_offline, record_hello
from farm.fleet.services.trials import allow_trial, ask_for_trial, begin_trial, decline_trial, end_late_trials

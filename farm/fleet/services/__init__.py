from farm.fleet.services.enrolment import approve, enrol, grant_secret, invite, note_refusal
from farm.fleet.services.health import (
    change_settings,
    drain,
    note_block_end,
    put_aside_unvouched,
    quarantine,
    resume,
    revoke,
)
from farm.fleet.services.lendings import agree, decline, end_lapsed_lendings, share
from farm.fleet.services.noise import keep_null_estimates
from farm.fleet.services.presence import end_wait, hello, mark_offline, welcome
from farm.fleet.services.trials import allow_trial, ask_for_trial, begin_trial, decline_trial, end_late_trials

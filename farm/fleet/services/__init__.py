from farm.fleet.services.enrolment import approve, enrol, grant_secret, invite
from farm.fleet.services.health import change_settings, drain, note_block_end, quarantine, resume, revoke, share
from farm.fleet.services.noise import keep_null_estimate
from farm.fleet.services.presence import hello, mark_offline, welcome
from farm.fleet.services.refusals import note_refusal

__all__ = [
    "approve",
    "change_settings",
    "drain",
    "enrol",
    "grant_secret",
    "hello",
    "invite",
    "keep_null_estimate",
    "mark_offline",
    "note_block_end",
    "note_refusal",
    "quarantine",
    "resume",
    "revoke",
    "share",
    "welcome",
]

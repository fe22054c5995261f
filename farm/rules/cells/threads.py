"""Threads that a machine does not have: more than its cores wait for each other and hold up all else."""

from farm.contract.cells import SessionSettings
from farm.contract.reasons import Reason, ReasonCode


def refusal(session: SessionSettings, *, cores: int | None) -> Reason | None:
    """Why a machine of so many logical cores does not measure this session; None where it does, or nobody counted."""
    most = max(session.threads, session.inter_op_threads)
    if cores is None or most <= cores:
        return None
    what = "threads" if session.threads == most else "inter-op threads"
    text = f"{most} {what} on a machine of {cores} cores only wait for each other: ask for {cores} or fewer."
    return Reason(code=ReasonCode.NOT_SUPPORTED, text=text)

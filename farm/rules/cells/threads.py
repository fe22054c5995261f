"""Threads that a machine does not have: more than its cores wait for each other and hold up all else."""

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.cells import scenarios
from farm.rules.runtimes import providers
from farm.rules.wording.numbers import counted


def refusal(spec: CellSpec, *, cores: int | None) -> Reason | None:
    """Why a machine of so many logical cores does not measure this cell; None where it does, or nobody counted.

    Sessions that run at once each have threads of their own; those of a device wait for it, and are not multiplied.
    """
    session = spec.session
    each = max(session.threads, session.inter_op_threads)
    provider = providers.find(spec.provider)
    load = scenarios.of(spec)
    asked_streams = load.streams if load.is_open else spec.workload.concurrency
    streams = asked_streams if provider is not None and provider.device == "cpu" else 1
    if cores is None or each * streams <= cores:
        return None
    what = "threads" if session.threads == each else "inter-op threads"
    if each > cores or streams == 1:
        asked, less = f"{each} {what}", f"{cores} or fewer"
    else:
        asked = f"{counted(streams, 'stream')} of {counted(each, what.removesuffix('s'))}"
        less = f"{cores // each} or fewer at once"
    text = f"{asked} on a machine of {cores} cores only wait for each other: ask for {less}."
    return Reason(code=ReasonCode.NOT_SUPPORTED, text=text)

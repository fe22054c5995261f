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
    if cores is None or needed_cores(spec) <= cores:
        return None
    session, each, streams = spec.session, _threads_per_session(spec), _sessions_at_once(spec)
    what = "threads" if session.threads == each else "inter-op threads"
    if each > cores or streams == 1:
        asked, less = f"{each} {what}", f"{cores} or fewer"
    else:
        asked = f"{counted(streams, 'stream')} of {counted(each, what.removesuffix('s'))}"
        less = f"{cores // each} or fewer at once"
    text = f"{asked} on a machine of {cores} cores only wait for each other: ask for {less}."
    return Reason(code=ReasonCode.NOT_SUPPORTED, text=text)


def needed_cores(spec: CellSpec) -> int:
    return _threads_per_session(spec) * _sessions_at_once(spec)


def _threads_per_session(spec: CellSpec) -> int:
    return max(spec.session.threads, spec.session.inter_op_threads)


def _sessions_at_once(spec: CellSpec) -> int:
    provider = providers.find(spec.provider)
    if provider is None or provider.device != "cpu":
        return 1
    return scenarios.of_cell(spec).inferences_at_once(spec.workload)

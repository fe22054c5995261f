"""Refuses cells that use more threads than a machine has cores, since these would only wait for each other."""

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.cells import scenarios
from farm.rules.runtimes import providers
from farm.rules.wording.numbers import counted


def refusal(spec: CellSpec, *, cores: int | None) -> Reason | None:
    """Say why a machine with `cores` logical cores does not measure this cell; None where it does, or `cores` is None.

    The threads of all sessions that run at once are added up, except on a device, where threads only wait for it.
    """
    if cores is None or needed_cores(spec) <= cores:
        return None
    threads, streams = _count_threads_per_session(spec), _count_sessions_at_once(spec)
    kind = "thread" if spec.session.threads == threads else "inter-op thread"
    if threads > cores or streams == 1:
        asked, way_out = f"{threads} {kind}s", f"{cores} or fewer"
    else:
        asked, way_out = (
            f"{counted(streams, 'stream')} of {counted(threads, kind)}",
            f"{cores // threads} or fewer at once",
        )
    text = f"{asked} on a machine of {cores} cores only wait for each other: ask for {way_out}."
    return Reason(code=ReasonCode.NOT_SUPPORTED, text=text)


def needed_cores(spec: CellSpec) -> int:
    """Count the threads of all sessions that run at once, or of a single session where the provider is not of the CPU.

    A session counts with its intra-op or its inter-op threads, whichever are more.
    """
    return _count_threads_per_session(spec) * _count_sessions_at_once(spec)


def _count_threads_per_session(spec: CellSpec) -> int:
    return max(spec.session.threads, spec.session.inter_op_threads)


def _count_sessions_at_once(spec: CellSpec) -> int:
    provider = providers.find(spec.provider)
    if provider is None or provider.device != "cpu":
        return 1
    return scenarios.of_cell(spec).inferences_at_once(spec.workload)

"""Whether two arms of a block are alike but for what is compared: unlike is not compared, and said in words."""

from farm.contract.reports import Facts
from farm.rules.comparing.confounders import find_confounders
from farm.rules.judging.evidence import Evidence
from farm.rules.planning.plans import PlannedBlock, PlannedComparison
from farm.rules.runtimes.provider_table import PROVIDERS

# vary on one machine, or are no fact of how it measures
_VARYING_FACTS = {"load_1m", "temperature_c", "hostname", "advice", "more", "sandbox", "python"}
# facts under `more` that make two attempts unlike
_LASTING_FACTS = ("driver", "driver_version", "cuda_version", "rocm_version", "microcode", "kernel", "browser")
# packages that a provider computes with, and that a change of runtime may bring along
_COMPUTING_PACKAGES = tuple(beginning for entry in PROVIDERS for beginning in entry.computes_with)


def find_obstacle(planned: PlannedComparison, block: PlannedBlock, evidence: Evidence) -> str:
    """Why the two arms cannot be compared at all, in words; empty when nothing stands in the way."""
    for arm in (planned.baseline, planned.candidate):
        if (reason := evidence.failure(arm)) is not None:
            return f"{block.arms[arm].id} has no full set of samples: {reason.text}"
        if text := _ran_elsewhere(arm, block, evidence):
            return text
    if text := _not_real(planned, block, evidence):
        return text
    return _unlike_attempts(evidence.facts)


def _not_real(planned: PlannedComparison, block: PlannedBlock, evidence: Evidence) -> str:
    """Why latencies are not those of the hardware: an emulated processor, or a simulator of the device."""
    if any(facts.is_emulated for facts in evidence.facts):
        return "The node is emulated: its latencies are not those of the hardware."
    for arm in (planned.baseline, planned.candidate):
        check = evidence.checks.get(arm)
        if check is not None and check.is_simulated:
            place = block.arms[arm]
            return (
                f"{place.id} ran on a simulator of {place.spec.provider}: its latencies are not those of the hardware."
            )
    return ""


def describe_confounders(planned: PlannedComparison, evidence: Evidence) -> str:
    """What else differs between the two arms by their environment, in words; empty when nothing does."""
    old, new = (_computing_packages(arm, evidence) for arm in (planned.baseline, planned.candidate))
    found = find_confounders(old, new)
    return f"Confounded: {' '.join(found)}" if found else ""


def _ran_elsewhere(arm: int, block: PlannedBlock, evidence: Evidence) -> str:
    check, place = evidence.checks.get(arm), block.arms[arm]
    if check is None or not check.active_providers or place.spec.provider in check.active_providers:
        return ""
    return f"{place.id} asked for {place.spec.provider} and ran on {', '.join(check.active_providers)}."


def _unlike_attempts(facts: list[Facts]) -> str:
    """The block was measured in several attempts: the machine must have been the same."""
    stated = [
        fact.model_dump(mode="json", exclude=_VARYING_FACTS)
        | {name: fact.more[name] for name in _LASTING_FACTS if name in fact.more}
        for fact in facts
    ]
    for later in stated[1:]:
        if found := find_confounders(stated[0], later):
            return f"The node changed between two attempts: {' '.join(found)}"
    return ""


def _computing_packages(arm: int, evidence: Evidence) -> dict[str, object]:
    check = evidence.checks.get(arm)
    packages = {} if check is None else check.packages
    return {name: version for name, version in packages.items() if name.startswith(_COMPUTING_PACKAGES)}

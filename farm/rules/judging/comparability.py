"""Says why two arms of a block cannot be compared: they differ in more than what the comparison is about."""

from farm.contract.reports import Facts
from farm.rules.comparing.confounders import find_confounders
from farm.rules.judging.evidence import Evidence
from farm.rules.planning.plans import PlannedBlock, PlannedComparison
from farm.rules.runtimes.provider_table import PROVIDERS

# facts that vary on one machine, or that do not affect its timings
_VARYING_FACTS = {"load_1m", "temperature_c", "hostname", "advice", "more", "sandbox", "python"}
# facts under `more` that may not differ between two attempts
_LASTING_FACTS = ("driver", "driver_version", "cuda_version", "rocm_version", "microcode", "kernel", "browser")
# packages that a provider computes with, and that a change of runtime may bring along
_COMPUTING_PACKAGES = tuple(beginning for entry in PROVIDERS for beginning in entry.computes_with)


def find_obstacle(planned: PlannedComparison, block: PlannedBlock, evidence: Evidence) -> str:
    """Say why the two arms cannot be compared at all; empty where they can.

    They cannot where an arm failed or ran on another provider than asked, where the hardware is emulated or simulated,
    or where the machine changed between two attempts.
    """
    for arm in (planned.baseline, planned.candidate):
        if (reason := evidence.failure(arm)) is not None:
            return f"{block.arms[arm].id} has no full set of samples: {reason.text}"
        check, planned_arm = evidence.checks.get(arm), block.arms[arm]
        provider = planned_arm.spec.provider
        if check is not None and check.active_providers and provider not in check.active_providers:
            return f"{planned_arm.id} asked for {provider} and ran on {', '.join(check.active_providers)}."
    return _explain_unreal_latency(planned, block, evidence) or _describe_unlike_attempts(evidence.facts)


def _explain_unreal_latency(planned: PlannedComparison, block: PlannedBlock, evidence: Evidence) -> str:
    """Say why latencies are not those of real hardware, because it is emulated or simulated; empty where they are."""
    if any(facts.is_emulated for facts in evidence.facts):
        return "The node is emulated: its latencies are not those of the hardware."
    for arm in (planned.baseline, planned.candidate):
        check = evidence.checks.get(arm)
        if check is not None and check.is_simulated:
            name, provider = block.arms[arm].id, block.arms[arm].spec.provider
            return f"{name} ran on a simulator of {provider}: its latencies are not those of the hardware."
    return ""


def describe_confounders(planned: PlannedComparison, evidence: Evidence) -> str:
    """Say how packages that a provider computes with, such as cuDNN, differ between the environments of both arms.

    Empty where none does.
    """
    computing_packages: list[dict[str, object]] = []
    for arm in (planned.baseline, planned.candidate):
        packages = check.packages if (check := evidence.checks.get(arm)) is not None else {}
        computing_packages.append({name: packages[name] for name in packages if name.startswith(_COMPUTING_PACKAGES)})
    confounders = find_confounders(*computing_packages)
    return f"Confounded: {' '.join(confounders)}" if confounders else ""


def _describe_unlike_attempts(facts: list[Facts]) -> str:
    """Say how the machine changed between the attempts of a block; empty when it did not."""
    comparable = [
        fact.model_dump(mode="json", exclude=_VARYING_FACTS)
        | {name: fact.more[name] for name in _LASTING_FACTS if name in fact.more}
        for fact in facts
    ]
    for later in comparable[1:]:
        if changes := find_confounders(comparable[0], later):
            return f"The node changed between two attempts: {' '.join(changes)}"
    return ""

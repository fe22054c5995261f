"""Policies by which ONNX Runtime itself chooses a device: where it cannot follow one. Pure."""

from farm.contract.cells import NO_POLICY, CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.runtimes import plugins, providers
from farm.rules.runtimes.order import release_order

# by PyPI's wheels: the Python of releases before has no such method
POLICY_FROM = "1.23.0"


def refusal(spec: CellSpec) -> Reason | None:
    """Why ONNX Runtime cannot follow the cell's policy, or what else stands against it; None when nothing does."""
    policy = spec.session.policy
    if policy == NO_POLICY:
        return None
    if providers.of(spec.provider) is not providers.CPU:
        text = f"The policy {policy} lets ONNX Runtime choose, and {spec.provider} is asked for: leave one of them out."
    elif plugins.plugin_of(spec.runtime) is not None:
        text = f"The policy {policy} chooses among what a build of ONNX Runtime itself has: leave {spec.runtime} out."
    elif release_order(spec.runtime.version) < release_order(POLICY_FROM):
        text = f"{spec.runtime} follows no policy: take {POLICY_FROM} or newer, or leave `policy` out."
    else:
        return None
    return Reason(code=ReasonCode.NOT_SUPPORTED, text=text)

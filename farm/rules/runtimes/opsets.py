"""Says which operator sets and IR versions each release of ONNX Runtime loads, and refuses those it does not.

Source: the releases themselves, each tried with a ladder of one-node models until November 2026; docs/variants.md has
the table. What a newer release loads is observed where it is installed, and until then it is assumed to load anything.
"""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from farm.contract.cells import Loads
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.runtimes.order import minor_of, release_order

ONNX_DOMAINS = ("", "ai.onnx")
ML_DOMAIN = "ai.onnx.ml"
# domains whose operators ONNX Runtime brings itself
RUNTIME_DOMAINS = frozenset(
    {
        *ONNX_DOMAINS,
        ML_DOMAIN,
        "ai.onnx.training",
        "ai.onnx.preview.training",
        "com.microsoft",
        "com.microsoft.nchwc",
        "com.microsoft.experimental",
        "com.ms.internal.nhwc",
        "org.pytorch.aten",
    }
)


class Limits(Loads):
    """What a release loads."""

    # whether nobody has tried the release, so that the newest known one's limits count
    is_assumed: bool = False


# what releases that are newer than the table were seen to load, by version
ObservedLoads = Mapping[str, Loads]
NOTHING: Final[ObservedLoads] = MappingProxyType({})
# what releases load from this minor release on
_SINCE = (
    ((1, 15), Limits(opset=19, ir=9, ml=3)),
    ((1, 17), Limits(opset=20, ir=9, ml=4)),
    ((1, 18), Limits(opset=21, ir=10, ml=5)),
    ((1, 21), Limits(opset=22, ir=10, ml=5)),
    ((1, 23), Limits(opset=23, ir=11, ml=5)),
    ((1, 24), Limits(opset=25, ir=13, ml=5)),
    ((1, 25), Limits(opset=26, ir=13, ml=5)),
    ((1, 32), Limits(opset=28, ir=14, ml=5)),
)
# the IR version that came with each default operator set
_IR_OF_OPSET = (
    (28, 14),
    (25, 13),
    (24, 12),
    (23, 11),
    (21, 10),
    (19, 9),
    (15, 8),
    (13, 7),
    (11, 6),
    (10, 5),
    (9, 4),
    (0, 3),
)
OLDEST = (1, 15)
NEWEST = (1, 32)


def limits_of(runtime_version: str, observed: ObservedLoads = NOTHING) -> Limits | None:
    """Return what a release loads; None where it is older than the table, or no version at all.

    A release newer than the table loads at least what the table's newest does, whatever was observed of it.
    """
    limits = next((limits for since, limits in reversed(_SINCE) if since <= minor_of(runtime_version)), None)
    if limits is None or not is_newer_than_table(runtime_version):
        return limits
    loads = observed.get(runtime_version)
    return Limits(**dict(limits.max_with(loads or limits)), is_assumed=loads is None)


def is_newer_than_table(runtime_version: str) -> bool:
    return minor_of(runtime_version) > NEWEST


def max_opset(runtime_version: str, observed: ObservedLoads = NOTHING) -> int | None:
    # `max-of-runtime` in a matrix stands for this operator set
    limits = limits_of(runtime_version, observed)
    return None if limits is None else limits.opset


def ir_of_opset(opset: int) -> int:
    """Return the IR version of the ONNX release that introduced this operator set.

    Each release of ONNX Runtime that loads the operators loads this version too. An operator set newer than the table
    gets its newest IR version; a negative one raises StopIteration.
    """
    return next(ir for since, ir in _IR_OF_OPSET if opset >= since)


def is_custom(domain: str) -> bool:
    return domain not in RUNTIME_DOMAINS


def refusal(
    opset_imports: Mapping[str, int],
    ir_version: int,
    custom_domains: Iterable[str],
    runtime_version: str,
    observed: ObservedLoads = NOTHING,
) -> Reason | None:
    """Return the reason why this release cannot load a model with these stamps; None where it can.

    The first that applies is returned: custom domains, a release older than the table (or no version), the first
    operator set in the order of domains that is too new, the IR version. Operator sets of domains beyond ONNX's own do
    not count. A release newer than the table of which nothing was observed is refused for custom domains only.

    `custom_domains` are domains used by nodes that neither the model's own functions nor ONNX Runtime define.
    """
    custom = sorted(custom_domains)
    if custom:
        text = (
            f"Operators of the domain {', '.join(custom)} are in no build of ONNX Runtime, and libraries of custom "
            "operators are not loaded here: export the model with standard operators."
        )
        return Reason(code=ReasonCode.CUSTOM_DOMAIN, text=text)
    limits = limits_of(runtime_version, observed)
    if limits is None:
        text = f"ONNX Runtime {runtime_version} is older than 1.15, the oldest release measured here: take a newer one."
        return Reason(code=ReasonCode.UNKNOWN_RUNTIME, text=text)
    if limits.is_assumed:
        return None  # the point is planned, and its check says what the release loads
    return _refuse_too_new(opset_imports, ir_version, limits=limits, runtime_version=runtime_version, observed=observed)


def find_lowest_runtime(
    opset_imports: Mapping[str, int], ir_version: int, observed: ObservedLoads = NOTHING
) -> str | None:
    """Return the first minor release that loads these stamps, such as "1.21", or an observed one newer than the table.

    None where none is known to load them. Only the default domain and that of ONNX-ML count.
    """
    table: list[tuple[str, Loads]] = [(f"{major}.{minor}", limits) for (major, minor), limits in _SINCE]
    for version, limits in [*table, *sorted(observed.items(), key=lambda known: release_order(known[0]))]:
        if ir_version <= limits.ir and all(v <= _find_highest(d, limits) for d, v in opset_imports.items()):
            return version
    return None


def _refuse_too_new(
    opset_imports: Mapping[str, int], ir_version: int, *, limits: Limits, runtime_version: str, observed: ObservedLoads
) -> Reason | None:
    newest = max(observed, key=release_order, default=f"{NEWEST[0]}.{NEWEST[1]}")
    for domain, version in sorted(opset_imports.items()):
        highest = _find_highest(domain, limits)
        if version > highest:
            stamp = f"opset {version}" if domain in ONNX_DOMAINS else f"{domain} opset {version}"
            lowest = find_lowest_runtime({domain: version}, 0, observed)
            text = _explain_too_new(
                stamp, lowest=lowest, newest=newest, highest=round(highest), runtime=runtime_version
            )
            return Reason(code=ReasonCode.OPSET_TOO_NEW, text=text)
    if ir_version > limits.ir:
        stamp, lowest = f"IR version {ir_version}", find_lowest_runtime({}, ir_version, observed)
        text = _explain_too_new(stamp, lowest=lowest, newest=newest, highest=limits.ir, runtime=runtime_version)
        return Reason(code=ReasonCode.IR_TOO_NEW, text=text)
    return None


def _find_highest(domain: str, limits: Loads) -> float:
    if domain in ONNX_DOMAINS:
        return limits.opset
    return limits.ml if domain == ML_DOMAIN else math.inf


def _explain_too_new(stamp: str, *, lowest: str | None, newest: str, highest: int, runtime: str) -> str:
    loads = f"{runtime} loads up to {highest}"
    if lowest is None:
        return (
            f"{stamp} is newer than any known ONNX Runtime loads, and {loads}: take a release after {newest}, or "
            "export the model with an older one."
        )
    return f"{stamp} needs ONNX Runtime ≥ {lowest}, and {loads}: take a newer runtime, or export with an older one."

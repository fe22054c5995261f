"""Collects what runtimes were seen to load, where the table of operator sets does not know their release."""

from collections.abc import Iterable, Mapping

from farm.contract.cells import Loads, Runtime
from farm.rules.runtimes import opsets, plugins
from farm.rules.runtimes.provider_table import CPU


def merge_observed_loads(reports: Iterable[Mapping[str, Loads]]) -> dict[str, Loads]:
    """Merge what machines report of their runtimes (`distribution==version`), by the version of ONNX Runtime.

    The highest of several limits counts: too low a limit would refuse models that load, and with too high a limit a
    point is planned, which then fails with an explanation. Left out are packages that are not known to be ONNX Runtime
    or a plug-in beside it, and releases that the table knows.
    """
    merged: dict[str, Loads] = {}
    for report in reports:
        for name, loads in report.items():
            runtime = Runtime.of(name)
            version = plugins.core_of(runtime).version if runtime.distribution in CPU.packages else ""
            if opsets.is_newer_than_table(version):
                merged[version] = loads.max_with(merged.get(version, loads))
    return merged

"""Collects what runtimes were seen to load, where the table of operator sets does not know their release."""

from collections.abc import Iterable, Mapping

from farm.contract.cells import Loads, Runtime
from farm.rules.runtimes import opsets, plugins
from farm.rules.runtimes.provider_table import CPU


def merge_observed_loads(reports: Iterable[Mapping[str, Loads]]) -> dict[str, Loads]:
    """Merge what machines report of their runtimes (`distribution==version`), by the version of ONNX Runtime.

    Of several answers the highest counts: a limit that is too low would refuse what loads; one that is too high lets a
    point be planned, which then fails with an explanation. Packages whose versions are not ONNX Runtime's are left out,
    and releases that the table knows.
    """
    merged: dict[str, Loads] = {}
    for report in reports:
        for name, loads in report.items():
            runtime = Runtime.of(name)
            version = plugins.core_of(runtime).version if runtime.distribution in CPU.packages else ""
            if opsets.is_newer_than_table(version):
                merged[version] = loads.max_with(merged.get(version, loads))
    return merged

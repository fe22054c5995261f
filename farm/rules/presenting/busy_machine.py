"""What is said of figures that were measured beside other programs. Pure; without numpy, as the client says it too."""

from farm.contract.document_comparisons import Comparison


def note_of_traces(comparison: Comparison) -> str:
    """That its operators' times, which are of the clock, were traced beside other programs; empty otherwise."""
    return "traced while other programs kept the machine busy" if comparison.verdict_from == "processor" else ""

"""What deleting a model or version would take away, and what it took."""

from typing import TYPE_CHECKING

from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.registry.selectors import Removal
    from farm.registry.services import Removed


def what_goes(removal: "Removal") -> str:
    """What is deleted for good, what is hidden, and what stays."""
    parts = []
    if removal.unmeasured:
        goes = numbers.counted(removal.unmeasured, "version")
        size = numbers.size(removal.unmeasured_bytes)
        parts.append(
            f"{goes} without runs will be deleted permanently, with files that nothing else uses (up to {size})."
        )
    if removal.measured:
        stays = numbers.counted(removal.measured, "measured version")
        runs = numbers.counted(removal.runs, "run")
        parts.append(f"{stays} will be hidden and can be restored; {runs} and their results are kept.")
    return " ".join(parts) or "It has no versions; nothing else is deleted with it."


def done(name: str, removed: "Removed") -> str:
    """What became of it."""
    parts = []
    if removed.deleted:
        freed = f", which freed {numbers.size(removed.freed_bytes)}" if removed.freed_bytes else ""
        parts.append(f"{numbers.counted(removed.deleted, 'version')} deleted permanently{freed}")
    if removed.hidden:
        parts.append(f"{numbers.counted(removed.hidden, 'version')} hidden, with their runs and results kept")
    return f"{name} is deleted{': ' if parts else ''}{'; '.join(parts)}."

"""Sentences about the deletion of models and versions: what it would do, and what it did."""

from typing import TYPE_CHECKING

from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.registry.selectors import Removal
    from farm.registry.services import Removed


def describe_removal(removal: "Removal") -> str:
    """Say what a deletion would remove permanently, what it would hide, and what is kept. Nothing is deleted here."""
    parts = []
    if removal.unmeasured:
        goes = numbers.counted(removal.unmeasured, "version")
        size = numbers.size(removal.unmeasured_bytes)
        parts.append(
            f"{goes} without runs will be deleted permanently, with files that nothing else uses (up to {size})."
        )
    if removal.measured:
        stays = numbers.counted(removal.measured, "measured version")
        kept = numbers.counted(removal.runs, "run")
        parts.append(f"{stays} will be hidden and can be restored; {kept} and their results are kept.")
    return " ".join(parts) or "It has no versions; nothing else is deleted with it."


def describe_removed(name: str, removed: "Removed") -> str:
    """Say that `name` is deleted, with how many versions were deleted permanently and how many are hidden."""
    parts = []
    if removed.deleted:
        freed = f", which freed {numbers.size(removed.freed_bytes)}" if removed.freed_bytes else ""
        parts.append(f"{numbers.counted(removed.deleted, 'version')} deleted permanently{freed}")
    if removed.hidden:
        parts.append(f"{numbers.counted(removed.hidden, 'version')} hidden, with their runs and results kept")
    return f"{name} is deleted{': ' if parts else ''}{'; '.join(parts)}."

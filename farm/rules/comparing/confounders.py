"""Finds facts about the machine that differ between two measurements and may explain a change between them."""

from collections.abc import Mapping

# Facts that change from block to block on the same machine; its usable memory changes with the kernel.
VARYING_FACTS = frozenset({"load_1m", "temperature_c", "advice", "memory_bytes"})
# Facts that make two machines different hardware.
HARDWARE_FACTS = ("arch", "cpu_model", "gpus", "logical_cores", "physical_cores")


def find_confounders(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Write a sentence for each fact that differs or that only one side has, in order of name: `os was 5 and is 6.`

    A fact is anything that JSON can hold; a nested fact is named with dots. VARYING_FACTS are left out.
    """
    before, after = _flatten(old), _flatten(new)
    names = sorted(name for name in before.keys() | after.keys() if name.split(".")[-1] not in VARYING_FACTS)
    return [
        f"{name} was {_describe_value(before, name)} and is {_describe_value(after, name)}."
        for name in names
        if before.get(name) != after.get(name)
    ]


def is_other_hardware(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Whether a hardware fact that both sides record differs; facts that one side lacks are ignored."""
    known_on_both = [name for name in HARDWARE_FACTS if old.get(name) is not None and new.get(name) is not None]
    return any(old[name] != new[name] for name in known_on_both)


def _flatten(facts: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _describe_value(facts: Mapping[str, object], name: str) -> str:
    value = facts.get(name)
    return "not recorded" if value is None else str(value)

"""What differs between two measurements besides what was to be compared."""

from collections.abc import Mapping

# Facts that vary from block to block on one machine and say nothing about what it is; memory varies with the kernel.
PASSING_FACTS = frozenset({"load_1m", "temperature_c", "advice", "memory_bytes"})
# Facts whose difference makes it another kind of machine.
HARDWARE_FACTS = ("arch", "cpu_model", "gpus", "logical_cores", "physical_cores")


def confounders(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """One sentence for each fact that the two sides state differently or that one leaves out, in order of name.

    A fact is anything that JSON can hold; nested ones are named with dots.
    """
    before, after = _flat(old), _flat(new)
    names = sorted(name for name in before.keys() | after.keys() if name.split(".")[-1] not in PASSING_FACTS)
    return [
        f"{name} was {_word(before, name)} and is {_word(after, name)}."
        for name in names
        if before.get(name) != after.get(name)
    ]


def is_other_hardware(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    stated = [name for name in HARDWARE_FACTS if old.get(name) is not None and new.get(name) is not None]
    return any(old[name] != new[name] for name in stated)


def _flat(facts: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _word(facts: Mapping[str, object], name: str) -> str:
    value = facts.get(name)
    return "not recorded" if value is None else str(value)

"""What differs between two measurements besides what was to be compared."""

from collections.abc import Mapping

# Facts that vary from block to block on one and the same machine and say nothing about what it is.
PASSING_FACTS = frozenset({"load", "temperature", "uptime", "time", "measured_at", "hostname", "name", "advice"})


def confounders(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """One sentence for each fact that both sides state differently, or that only one side states, in order of name.

    A fact is anything that JSON can hold; nested ones are named with dots.
    """
    before, after = _flat(old), _flat(new)
    names = sorted(name for name in before.keys() | after.keys() if not PASSING_FACTS.intersection(name.split(".")))
    return [
        f"{name} was {_word(before, name)} and is {_word(after, name)}."
        for name in names
        if before.get(name) != after.get(name)
    ]


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

"""What this node can do, each claim with its evidence: hardware tags and the providers that really executed."""

from dataclasses import dataclass, field

from farm.contract.reports import Facts

X86 = ("x86_64", "amd64", "i386", "i686", "x86")
ARM = ("aarch64", "arm64", "armv7l", "armv8l")


@dataclass(frozen=True)
class Abilities:
    """Tags with their evidence in words, and providers by ORT's names. None are claimed before a probe has run."""

    tags: dict[str, str] = field(default_factory=dict)
    providers: tuple[str, ...] = ()


def machine_tags(facts: Facts) -> dict[str, str]:
    """Tags that the processor itself proves: its architecture and its instruction sets."""
    arch = facts.arch.lower()
    tags = {tag: f"architecture {facts.arch}" for tag, names in (("x86", X86), ("arm", ARM)) if arch in names}
    return tags | {name: f"the processor lists {name}" for name in facts.instruction_sets}

"""Whether what a node says about itself can be true."""

from collections.abc import Collection, Mapping

from farm.base.refusals import Unprocessable
from farm.contract.reports import Facts
from farm.rules.runtimes.providers import find

X86_ARCHITECTURES = ("x86_64", "amd64", "i386", "i686", "x86")
ARM_ARCHITECTURES = ("aarch64", "arm64", "armv7l", "armv8l")
# facts are stored and shown; a page of text is enough
MAX_FACTS_BYTES = 65_536


def check_facts(facts: Facts) -> None:
    """Raises Unprocessable when the facts are larger than any machine needs."""
    size = len(facts.model_dump_json())
    if size > MAX_FACTS_BYTES:
        raise Unprocessable(
            f"The facts take {size} bytes; at most {MAX_FACTS_BYTES} are taken.", code="facts_too_large"
        )


def check_tags(tags: Mapping[str, str], facts: Facts, *, proven: Collection[str]) -> None:
    """Raises Unprocessable for a tag that has no evidence, or that the node contradicts itself.

    `tags`: each with its evidence. `proven`: ONNX Runtime's names of the providers that a probe saw executing.
    """
    arch = facts.arch.lower()
    for tag, evidence in tags.items():
        provider = find(tag)
        if not evidence.strip():
            raise Unprocessable(f"The tag “{tag}” came without evidence.", code="false_tag")
        if provider is not None and provider.tag == tag and provider.name not in proven:
            raise Unprocessable(
                f"The tag “{tag}” was claimed, and no probe saw {provider.name} executing.", code="false_tag"
            )
    for tag, allowed in (("x86", X86_ARCHITECTURES), ("arm", ARM_ARCHITECTURES)):
        if tag in tags and arch not in allowed:
            raise Unprocessable(f"A {facts.arch} machine cannot carry the tag “{tag}”.", code="false_tag")

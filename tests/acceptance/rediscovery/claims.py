"""What a published claim is, and all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.releases import ONNXRUNTIME
from tests.acceptance.rediscovery.making import REPORTED, Maker


class Kind(StrEnum):
    """SLOWER and FASTER: others say so. SAME: others say that nothing changed. OWN: nobody published it."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    OWN = "own"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """`before`, `after`: the releases that the report compares. `until`: the last one that is searched for the date.

    `number`: of the issue or pull request, 0 where it is a release's notes. `says`: its figure, in a few words.
    `operators`: how the change may be called besides by the name of the reported node.
    """

    name: str
    number: int
    says: str
    kind: Kind
    before: str
    after: str
    maker: Maker
    until: str = ""
    operators: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """GitHub leads from an issue's address to a pull request of that number."""
        place = f"issues/{self.number}" if self.number else f"releases/tag/v{self.after}"
        return f"https://github.com/microsoft/onnxruntime/{place}"

    @property
    def verdict(self) -> str:
        """What a bench of both releases has to say. An unpublished change is a slower one."""
        return {Kind.SLOWER: "slower", Kind.OWN: "slower", Kind.FASTER: "faster"}.get(self.kind, "")

    @property
    def releases(self) -> list[str]:
        """The releases among which the change is dated."""
        first, last = release_order(self.before), release_order(self.until or self.after)
        return [one for one in ONNXRUNTIME if first <= release_order(one) <= last]

    def names(self, node: str, op_type: str, covers: Sequence[str]) -> bool:
        """Whether an entry of the explanation is the reported operator."""
        return any(name.startswith(REPORTED) for name in (node, *covers)) or op_type in self.operators


def claims() -> tuple[Claim, ...]:
    """Every one, in the order of the table."""
    from tests.acceptance.rediscovery.improvements import IMPROVEMENTS
    from tests.acceptance.rediscovery.regressions import REGRESSIONS
    from tests.acceptance.rediscovery.regressions_118 import REGRESSIONS_118
    from tests.acceptance.rediscovery.unchanged import UNCHANGED

    return (*REGRESSIONS, *REGRESSIONS_118, *IMPROVEMENTS, *UNCHANGED)

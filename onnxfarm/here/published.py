"""Which releases exist beyond those known here: the package index is asked through pip, with pip's own settings."""

import os
import subprocess
import sys
from collections.abc import Iterable

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.reasons import ReasonCode
from farm.rules.runtimes.listings import PIP_ENVIRONMENT, PIP_WORDS, Listing, read_listing
from farm.rules.runtimes.order import is_prerelease, release_order
from farm.rules.runtimes.releases import ONNXRUNTIME, unknown_sentence, yanked_sentence
from onnxfarm.problems import Infrastructure, Usage

TIMEOUT_S = 60.0


def beyond(runtimes: Iterable[Runtime]) -> tuple[Runtime, ...]:
    """The unknown ones among these that the index offers.

    Raises Usage for one that it has not, or has yanked. An index that cannot be reached has yanked nothing.
    """
    found: list[Runtime] = []
    listings: dict[str, Listing] = {}
    for runtime in dict.fromkeys(runtimes):
        if runtime.distribution not in listings:
            listings[runtime.distribution] = asked_of(runtime.distribution)
        listing = listings[runtime.distribution]
        refuse_yanked(runtime, listing)
        sentence = unknown_sentence(runtime)
        if sentence is None:
            continue
        if runtime.version not in listing.offered:
            raise Usage(
                sentence if listing.offered else f"{sentence} The package index, which might know, did not answer."
            )
        found.append(runtime)
    return tuple(found)


def refuse_yanked(runtime: Runtime, listing: Listing) -> None:
    """Raises Usage when the index took the release back, with its reason and the nearest other one."""
    if runtime.version in listing.yanked:
        yanked = {Runtime(distribution=runtime.distribution, version=name): why for name, why in listing.yanked.items()}
        raise Usage(yanked_sentence(runtime, yanked, listing.offered))


def refuse_uninstalled(document: Document) -> None:
    """Whether every runtime of a document could be installed on this machine.

    Raises Usage for one that the index answers without, as it has no file for this Python or platform; Infrastructure
    where the index or the machine is to blame.
    """
    for cell in document.cells:
        if cell.reason is None or cell.reason.code != ReasonCode.RUNTIME_INSTALL_FAILED:
            continue
        offered = asked_of(cell.runtime.distribution).offered
        if offered and cell.runtime.version not in offered:
            raise Usage(cell.reason.text)
        raise Infrastructure(cell.reason.text + ("" if offered else " The package index does not answer either."))


def published(distribution: str, listing: Listing | None = None) -> list[str]:
    """Stable releases in order: those known here, and what the index offers beyond them, but none that it yanked.

    `listing`: what the index says, where it was asked already. One that cannot be reached adds nothing.
    """
    found = asked_of(distribution) if listing is None else listing
    stable = {version for version in found.offered if not is_prerelease(version)}
    known = set(ONNXRUNTIME) if distribution == "onnxruntime" else set()
    newest = max(known, key=release_order, default="0")
    # older ones that are unknown here were taken back
    fresh = {version for version in stable if release_order(version) > release_order(newest)}
    return sorted((known | fresh) - found.yanked.keys(), key=release_order)


def asked_of(distribution: str) -> Listing:
    """What the index has for this Python and platform; nothing when it cannot be asked."""
    command = [sys.executable, *PIP_WORDS, "--retries", "1", distribution]
    environment = os.environ | PIP_ENVIRONMENT
    try:
        asked = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Listing()
    return read_listing(asked.stdout) or Listing()

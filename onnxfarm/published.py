"""Which releases exist beyond those known here: the package index is asked through pip, with pip's own settings."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable

from farm.contract.cells import Runtime
from farm.rules.narrowing import is_prerelease, release_order
from farm.rules.runtimes.releases import ONNXRUNTIME, unknown_sentence
from onnxfarm.problems import Usage

TIMEOUT_S = 60.0
_LIST = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
_VERSION = re.compile(r"^[0-9][0-9A-Za-z.+-]{0,31}$")


def beyond(runtimes: Iterable[Runtime]) -> tuple[str, ...]:
    """The unknown ones among these that the index offers, as `distribution==version`. Raises Usage for one it has not.

    Nothing is asked where all of them are known.
    """
    found: list[str] = []
    for runtime in dict.fromkeys(runtimes):
        sentence = unknown_sentence(runtime)
        if sentence is None:
            continue
        if runtime.version not in offered(runtime.distribution):
            raise Usage(sentence)
        found.append(str(runtime))
    return tuple(found)


def published(distribution: str) -> list[str]:
    """Stable releases in order: those known here, and what the index offers beyond them.

    An index that cannot be reached adds nothing. What is offered holds no yanked release that is not known here.
    """
    stable = {version for version in offered(distribution) if not is_prerelease(version)}
    known = set(ONNXRUNTIME) if distribution == "onnxruntime" else set()
    newest = max(known, key=release_order, default="0")
    # older ones that are unknown here were taken back
    fresh = {version for version in stable if release_order(version) > release_order(newest)}
    return sorted(known | fresh, key=release_order)


def offered(distribution: str) -> list[str]:
    """What the index offers for this Python and platform; empty when it cannot be asked."""
    command = [sys.executable, "-m", "pip", "index", "versions", distribution, "--no-input", "--retries", "1"]
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_COLOR": "1"}
    try:
        asked = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = _LIST.search(asked.stdout)
    parts = found.group(1).split(",") if found is not None and asked.returncode == 0 else []
    return [version for part in parts if _VERSION.match(version := part.strip())]

"""Finds releases that this version does not know, by asking the package index through pip, with pip's own settings."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from farm.base import downloads
from farm.base.private_files import write_private_file
from farm.contract.blocks import WheelFile
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.reasons import ReasonCode
from farm.rules.presenting import refusals
from farm.rules.runtimes import indexes
from farm.rules.runtimes.listings import PIP_ENVIRONMENT, PIP_WORDS, Listing, read_listing
from farm.rules.runtimes.order import is_prerelease, release_order
from farm.rules.runtimes.releases import NEWEST, ONNXRUNTIME, unknown_sentence, yanked_sentence
from onnxfarm.problems import Infrastructure, Usage
from worker.agent.installation import wheels

TIMEOUT_S = 60.0
# how long an answer of the index is kept, and how long the lack of one
KEPT_S, SILENCE_KEPT_S = 600.0, 60.0
SILENT = "The package index, which might know, did not answer."
# NAME=ADDRESS of indexes beside the usual one, separated by commas
INDEXES_VARIABLE = "ONNXFARM_INDEXES"
# the folder of a home for builds that were given as wheels
WHEELS = "wheels"
# stands for the newest stable release
NEWEST_WORD = "newest"


def find_unknown_runtimes(runtimes: Iterable[Runtime], *, home: Path) -> tuple[Runtime, ...]:
    """Return those of the runtimes that this version does not know: offered by an index, or given as wheels.

    Builds of the user's own indexes are downloaded into the home. Raises Usage for a runtime that no index has, or that
    was yanked, and Infrastructure for a build that cannot be downloaded. An index that does not answer has yanked none.
    """
    unknown: list[Runtime] = []
    for runtime in dict.fromkeys(runtimes):
        if wheels.find_wheel(runtime, home / WHEELS) is not None:
            unknown.append(runtime)
            continue
        if indexes.split_index(runtime.version)[1]:
            unknown.append(_find_in_own_index(runtime, home=home))
            continue
        listing = load_listing(runtime.distribution, home=home)
        check_not_yanked(runtime, listing)
        sentence = unknown_sentence(runtime)
        if sentence is None:
            continue
        if runtime.version not in listing.offered:
            raise Usage(sentence if listing.offered else f"{sentence} {SILENT}")
        unknown.append(runtime)
    return tuple(unknown)


def check_not_yanked(runtime: Runtime, listing: Listing) -> None:
    """Raises Usage when the release was yanked, with the index's reason and the nearest other release."""
    if runtime.version in listing.yanked:
        reasons = listing.yanked.items()
        yanked = {Runtime(distribution=runtime.distribution, version=version): reason for version, reason in reasons}
        raise Usage(yanked_sentence(runtime, yanked, listing.offered))


def check_installable(document: Document) -> None:
    """Raise an error where a cell of the document failed because its runtime could not be installed here.

    The first such cell decides. Raises Usage where the index has no file of that runtime for this Python or platform,
    and Infrastructure otherwise.
    """
    for cell in document.cells:
        if cell.reason is None or cell.reason.code != ReasonCode.RUNTIME_INSTALL_FAILED:
            continue
        offered = fetch_listing(cell.runtime.distribution).offered
        if offered and cell.runtime.version not in offered:
            raise Usage(refusals.describe_reason(cell.reason))
        raise Infrastructure(cell.reason.text + ("" if offered else " The package index does not answer either."))


def find_newest_release(*, home: Path, with_prereleases: bool = False) -> Runtime | None:
    """Find the newest release of `onnxruntime` for this machine; None where the index does not answer.

    With `with_prereleases`, those of the indexes of $ONNXFARM_INDEXES count too; Infrastructure is raised where one
    cannot be read.
    """
    offered = [*load_listing(NEWEST.distribution, home=home).offered]
    if with_prereleases:
        offered += [version for name in read_own_indexes() for version in _download_page(name, NEWEST.distribution)]
    fitting = [version for version in offered if with_prereleases or not is_prerelease(version)]
    version = max(fitting, key=release_order, default="")
    return Runtime(distribution=NEWEST.distribution, version=version) if version else None


def read_own_indexes() -> dict[str, str]:
    """Read the addresses of the indexes of $ONNXFARM_INDEXES, by name. Raises Usage where they cannot be read."""
    try:
        return indexes.read_addresses(os.environ.get(INDEXES_VARIABLE, ""))
    except indexes.IndexProblem as problem:
        raise Usage(f"${INDEXES_VARIABLE}: {problem}") from problem


def _find_in_own_index(runtime: Runtime, *, home: Path) -> Runtime:
    """Find a runtime in the user's own index that it names, and download its wheel into the home.

    Raises Usage and Infrastructure.
    """
    version, name = indexes.split_index(runtime.version)
    if name not in read_own_indexes():
        raise Usage(f"{runtime} is of the index {name}, which is not known here: {INDEXES_VARIABLE}={name}=https://….")
    page = _download_page(name, runtime.distribution)
    if runtime.version not in page:
        newest = ", ".join(indexes.split_index(other)[0] for other in sorted(page, key=release_order)[-3:])
        raise Usage(f"The index {name} has no {runtime.distribution} {version}; its newest are {newest or 'none'}.")
    try:
        wheels.store_wheel(runtime, page[runtime.version], home / WHEELS)
    except wheels.WheelError as problem:
        raise Infrastructure(f"{runtime} cannot be had: {problem}") from problem
    except OSError as problem:
        raise Infrastructure(f"{runtime} cannot be kept in {home}: {problem.strerror}.") from problem
    return runtime


def _download_page(name: str, distribution: str) -> dict[str, tuple[WheelFile, ...]]:
    """Download what a user's own index lists of a package: wheels by version. Raises Infrastructure."""
    address = indexes.page_address(read_own_indexes()[name], distribution)
    try:
        body, media_type = downloads.download_page(
            address, accept=indexes.ACCEPT, limit_bytes=indexes.MAX_LIST_BYTES, within_s=TIMEOUT_S
        )
        return indexes.read_page(body, media_type, address=address, distribution=distribution, index=name)
    except (downloads.DownloadError, indexes.IndexProblem) as problem:
        raise Infrastructure(f"The index {name} cannot be read: {problem}") from problem


def resolve_runtimes(text: str | None, *, home: Path, with_prereleases: bool = False) -> str | None:
    """Replace `newest` and paths of wheels by versions, in a text of runtimes that are separated by commas.

    Wheels are copied into the home. None stays None, or is the newest pre-release or release `with_prereleases`. Raises
    Usage for a wheel that cannot be used, and Infrastructure where the index does not answer.
    """
    text = text or (NEWEST_WORD if with_prereleases else None)
    return text and ",".join(_resolve_word(word.strip(), home, with_prereleases) for word in text.split(","))


def _resolve_word(word: str, home: Path, with_prereleases: bool) -> str:
    if word.endswith(wheels.ENDING):
        try:
            return str(wheels.import_wheel(Path(word), home / WHEELS))
        except wheels.WheelError as problem:
            raise Usage(str(problem)) from problem
        except OSError as problem:
            raise Infrastructure(f"{word} cannot be kept in {home}: {problem.strerror}.") from problem
    if word != NEWEST_WORD:
        return word
    if (newest := find_newest_release(home=home, with_prereleases=with_prereleases)) is None:
        raise Infrastructure(f"Which release is the newest is not known: {SILENT} Name one.")
    return newest.version


def list_releases(distribution: str, *, home: Path, with_prereleases: bool = False) -> list[str]:
    """List the versions that this version knows and newer ones of the index, in order, without yanked ones.

    Pre-releases are listed only `with_prereleases`. An index that cannot be reached adds nothing.
    """
    listing = load_listing(distribution, home=home)
    offered = {version for version in listing.offered if with_prereleases or not is_prerelease(version)}
    known_here = set(ONNXRUNTIME) if distribution == "onnxruntime" else set()
    last = max(known_here, key=release_order, default="0")
    # an older release that this version does not know was yanked
    newer = {version for version in offered if release_order(version) > release_order(last)}
    return sorted((known_here | newer) - listing.yanked.keys(), key=release_order)


def load_listing(distribution: str, *, home: Path) -> Listing:
    """Return the index's listing of a package, which is stored in the home and asked for again after KEPT_S seconds.

    It is empty where the index cannot be asked.
    """
    place = home / "index" / f"{distribution}.json"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        plain = json.loads(place.read_text(encoding="utf-8"))
        listing = Listing(tuple(map(str, plain["offered"])), dict(plain["yanked"]))
        if time.time() - place.stat().st_mtime < (KEPT_S if listing.offered or listing.yanked else SILENCE_KEPT_S):
            return listing
    fetched = fetch_listing(distribution)
    with contextlib.suppress(OSError):
        write_private_file(place, json.dumps(asdict(fetched)))
    return fetched


def fetch_listing(distribution: str) -> Listing:
    """Ask the index, through pip, for its listing for this Python and platform; empty when it cannot be asked."""
    command = [sys.executable, *PIP_WORDS, "--retries", "1", distribution]
    environment = os.environ | PIP_ENVIRONMENT
    try:
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return Listing()
    return read_listing(process.stdout) or Listing()

"""Finds releases that this version does not know: it asks the package index through pip, with pip's settings."""

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
# the seconds for which an answer of the index is cached, and those for which a missing answer is
CACHE_S, NO_ANSWER_CACHE_S = 600.0, 60.0
SILENT = "The package index, which might know, did not answer."
# the variable with the user's own indexes, as NAME=ADDRESS separated by commas
INDEXES_VARIABLE = "ONNXFARM_INDEXES"
# the folder in a home for builds that the user gave as wheels, or that were downloaded from the user's own indexes
WHEELS = "wheels"
# stands for the newest stable release
NEWEST_WORD = "newest"


def find_unknown_runtimes(runtimes: Iterable[Runtime], *, home: Path) -> tuple[Runtime, ...]:
    """Return those of the runtimes that this version does not know, but that exist, each once and in their order.

    They are offered by an index, or were imported as wheels. Builds of the user's own indexes are downloaded into the
    home. Raises Usage for a runtime that no index has or that was yanked, even if this version knows it, and
    Infrastructure if a build cannot be downloaded. If the index does not answer, no release counts as yanked.
    """
    unknown: list[Runtime] = []
    for runtime in dict.fromkeys(runtimes):
        # builds that the user imported, or that the user's own index has
        if wheels.find_wheel(runtime, home / WHEELS) is not None:
            unknown.append(runtime)
            continue
        if indexes.split_index(runtime.version)[1]:
            unknown.append(_download_from_user_index(runtime, home=home))
            continue

        # public releases
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
    """Raise Usage if the release was yanked, with the index's reason and the nearest other release."""
    if runtime.version in listing.yanked:
        yanked = {runtime.model_copy(update={"version": version}): why for version, why in listing.yanked.items()}
        raise Usage(yanked_sentence(runtime, yanked, listing.offered))


def check_installable(document: Document) -> None:
    """Raise an error if a runtime of the document could not be installed here. The first such cell decides.

    Raises Usage if the index has no file of that runtime for this Python and platform, and Infrastructure otherwise.
    Asks the index, without the cache.
    """
    for cell in document.cells:
        if cell.reason is None or cell.reason.code != ReasonCode.RUNTIME_INSTALL_FAILED:
            continue
        offered = fetch_listing(cell.runtime.distribution).offered
        if offered and cell.runtime.version not in offered:
            raise Usage(refusals.describe_reason(cell.reason))
        raise Infrastructure(cell.reason.text + ("" if offered else " The package index does not answer either."))


def find_newest_release(*, home: Path, with_prereleases: bool = False) -> Runtime | None:
    """Find the newest release of `onnxruntime` for this Python and platform.

    None if the index offers none or does not answer. Its answer may come from the cache. `with_prereleases`:
    pre-releases count too, also those of the indexes in $ONNXFARM_INDEXES. Raises Infrastructure if one of these
    indexes cannot be read, and Usage if the variable is malformed.
    """
    offered = [*load_listing(NEWEST.distribution, home=home).offered]
    if with_prereleases:
        for name in read_user_indexes():
            offered += _download_page(name, NEWEST.distribution)
    fitting = [version for version in offered if with_prereleases or not is_prerelease(version)]
    version = max(fitting, key=release_order, default="")
    return Runtime(distribution=NEWEST.distribution, version=version) if version else None


def read_user_indexes() -> dict[str, str]:
    """Read the addresses of the user's own indexes from $ONNXFARM_INDEXES, by name. Raises Usage if it is malformed."""
    try:
        return indexes.read_addresses(os.environ.get(INDEXES_VARIABLE, ""))
    except indexes.IndexProblem as problem:
        raise Usage(f"${INDEXES_VARIABLE}: {problem}") from problem


def _download_from_user_index(runtime: Runtime, *, home: Path) -> Runtime:
    """Download the wheel of a runtime from the user's index that it names into the home, and return the runtime.

    Raises Usage and Infrastructure.
    """
    version, name = indexes.split_index(runtime.version)
    if name not in read_user_indexes():
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
    """Download the list of a package from a user's index: its wheels by version. Raises Infrastructure."""
    address = indexes.page_address(read_user_indexes()[name], distribution)
    try:
        body, media_type = downloads.download_page(
            address, accept=indexes.ACCEPT, max_bytes=indexes.MAX_LIST_BYTES, timeout_s=TIMEOUT_S
        )
        return indexes.read_page(body, media_type, address=address, distribution=distribution, index=name)
    except (downloads.DownloadError, indexes.IndexProblem) as problem:
        raise Infrastructure(f"The index {name} cannot be read: {problem}") from problem


def resolve_runtimes(text: str | None, *, home: Path, with_prereleases: bool = False) -> str | None:
    """Replace `newest` and paths of wheels by versions, in a list of runtimes separated by commas.

    Wheels are copied into the home; other words stay, and are not checked. None and an empty text become None, but
    `with_prereleases` the newest release of all. Raises Usage for a wheel that cannot be used, and Infrastructure if
    the newest release is asked for and the index does not answer.
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
    """List the releases of a package in their order: those that this version knows, and newer ones of the index.

    This version knows releases of `onnxruntime` only. Yanked releases are left out, and so are pre-releases of the
    index unless `with_prereleases`. If the index does not answer, only the known ones are listed.
    """
    listing = load_listing(distribution, home=home)
    offered = {version for version in listing.offered if with_prereleases or not is_prerelease(version)}
    known_here = set(ONNXRUNTIME) if distribution == "onnxruntime" else set()
    last = max(known_here, key=release_order, default="0")
    # an older release that this version does not know was yanked, so only newer ones are added
    newer = {version for version in offered if release_order(version) > release_order(last)}
    return sorted((known_here | newer) - listing.yanked.keys(), key=release_order)


def load_listing(distribution: str, *, home: Path) -> Listing:
    """Return what the index lists of a package, cached in the home for CACHE_S seconds.

    The listing is empty if the index does not answer, which is cached for NO_ANSWER_CACHE_S seconds.
    """
    place = home / "index" / f"{distribution}.json"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        plain = json.loads(place.read_text(encoding="utf-8"))
        listing = Listing(tuple(map(str, plain["offered"])), dict(plain["yanked"]))
        if time.time() - place.stat().st_mtime < (CACHE_S if listing.offered or listing.yanked else NO_ANSWER_CACHE_S):
            return listing
    fetched = fetch_listing(distribution)
    with contextlib.suppress(OSError):
        write_private_file(place, json.dumps(asdict(fetched)))
    return fetched


def fetch_listing(distribution: str) -> Listing:
    """Ask the index through pip for a package's releases for this Python and platform; empty if it does not answer."""
    command = [sys.executable, *PIP_WORDS, "--retries", "1", distribution]
    environment = os.environ | PIP_ENVIRONMENT
    try:
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return Listing()
    return read_listing(process.stdout) or Listing()

"""Package indexes that an admin adds to the default one, with the sha256 of each wheel that they offer."""

from typing import NamedTuple

from django.db import transaction

from farm.accounts.models import User
from farm.accounts.services import record
from farm.base import downloads
from farm.base.refusals import Conflict, Invalid, NotAllowed, require_row
from farm.registry.models import IndexedWheel, PackageIndex
from farm.rules.runtimes import indexes
from farm.rules.runtimes.distributions import BUILDS_ALONE

# added indexes of a farm
MAX_INDEXES = 5


class OfferedVersions(NamedTuple):
    """The versions that an index offers, and a sentence about the first wheel that it changed (empty: none)."""

    versions: tuple[str, ...] = ()
    problem: str = ""


def add_index(*, by: User, name: str, url: str) -> PackageIndex:
    """Add a package index, without asking it whether it answers.

    Raises NotAllowed for a person who is no admin of the farm, Invalid for a bad name or address, and Conflict for a
    name that is taken or where the farm has MAX_INDEXES.
    """
    _check_is_admin(by)
    try:
        name, url = indexes.read_name(name.strip()), indexes.read_address(url)
    except indexes.IndexProblem as problem:
        raise Invalid(str(problem), code="bad_index") from problem
    if PackageIndex.objects.filter(name=name).exists():
        raise Conflict(f"There is already an index {name}: remove it first.", code="name_taken")
    if PackageIndex.objects.count() >= MAX_INDEXES:
        raise Conflict(f"This farm has {MAX_INDEXES} indexes; remove one first.", code="too_many")
    with transaction.atomic():
        index = PackageIndex.objects.create(name=name, url=url, created_by=by)
        record(verb="index added", subject=name, actor=by, facts={"url": url})
    return index


def remove_index(*, by: User, name: str) -> None:
    """Remove a package index with its wheels, so that nodes install none of them any more; measurements stay.

    Raises NotAllowed for a person who is no admin of the farm, and Missing where there is no such index.
    """
    _check_is_admin(by)
    with transaction.atomic():
        index = require_row(PackageIndex.objects.filter(name=name), f"This farm has no index “{name[:40]}”.")
        record(verb="index removed", subject=index.name, actor=by, facts={"url": index.url})
        index.delete()


def fetch_index_versions(index: PackageIndex, distribution: str, *, timeout_s: float) -> OfferedVersions:
    """Ask an index which versions of a build of ONNX Runtime it offers, and store each new wheel with its sha256.

    A version is left out where the sha256 of one of its wheels differs from the stored one. A package that is not a
    build of ONNX Runtime has no versions, and the index is not asked. Raises DownloadError where the index does not
    answer, and IndexProblem where its page cannot be read.
    """
    if distribution not in BUILDS_ALONE:
        return OfferedVersions()
    address = indexes.page_address(index.url, distribution)
    body, media_type = downloads.download_page(
        address, accept=indexes.ACCEPT, max_bytes=indexes.MAX_LIST_BYTES, timeout_s=timeout_s
    )
    page = indexes.read_page(body, media_type, address=address, distribution=distribution, index=index.name)
    locked = dict(index.wheels.filter(distribution=distribution).values_list("name", "sha256"))
    changed = sorted(
        file.name for files in page.values() for file in files if locked.get(file.name, file.sha256) != file.sha256
    )
    IndexedWheel.objects.bulk_create(
        [
            IndexedWheel(index=index, distribution=distribution, version=version, **file.model_dump())
            for version, files in page.items()
            for file in files
            if file.name not in locked
        ],
        ignore_conflicts=True,
    )
    offered = tuple(version for version, files in page.items() if not any(file.name in changed for file in files))
    problem = f"The index {index.name} has other bytes than before under the name {changed[0]}." if changed else ""
    return OfferedVersions(offered, problem)


def _check_is_admin(user: User) -> None:
    if not user.is_superuser:
        raise NotAllowed("Only an admin of this farm adds or removes package indexes.")

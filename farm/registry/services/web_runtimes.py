"""Downloads ONNX Runtime Web from npm, unpacks it in a sandbox, and stores it for browsers that are nodes.

`fetch_web_runtime` does nothing unless the row is pending. It stores an error as the reason of the failure.
"""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final

from django.conf import settings
from django.utils import timezone

from farm.accounts.models import Team
from farm.base.refusals import Conflict, Missing, NotAllowed
from farm.contract.cells import FileRef
from farm.registry import npm, storage
from farm.registry.models import WebRuntime
from farm.registry.services.products import ensure_web_runtime, make_claimed_row
from farm.registry.states import MakingState
from farm.registry.work_folders import make_work_folder
from farm.rules.runtimes import web
from farm.workshop import orders

PACKAGE: Final = "package.tgz"
# how many releases outside of the farm's own table the runs of a team may have fetched
MAX_RELEASES_OF_TEAM: Final = 20
# after this time, the row of a release that could not be fetched may be deleted
FORGOTTEN_AFTER: Final = timedelta(days=1)


def find_or_order_web_runtime(version: str, *, team: Team | None) -> WebRuntime:
    """Return the row of a release, and order its download if necessary; `files` is filled once the row is ready.

    A ready row whose files differ from the farm's own table is deleted and ordered anew.

    `team` is the team whose block names the release. It is None where the asking node holds no such block; then only
    releases that the farm knows or has a row of are given. Raises Missing for a text that is no release or too old a
    one, NotAllowed for an unknown release without a team, and Conflict where the team had too many fetched or where the
    release cannot be fetched.
    """
    if not web.is_release(version):
        raise Missing(f"{version[:32]!r} is not a release of {web.DISTRIBUTION}: write it like {web.RELEASES[-1]}.")
    if (sentence := web.too_old_sentence(version)) is not None:
        raise Missing(sentence)
    if version not in web.RELEASES and not WebRuntime.objects.filter(version=version).exists():
        _check_may_fetch(version, team)
    for stored in WebRuntime.objects.filter(version=version, state=MakingState.READY):
        if web.mismatch_sentence(version, _digests(stored.files)) is not None:
            # it was fetched before the farm's table had this release, and differs from it
            stored.delete()
    row = ensure_web_runtime(version, team=team)
    if row.state == MakingState.FAILED:
        raise Conflict(row.reason_text, code=row.reason_code)
    return row


def _check_may_fetch(version: str, team: Team | None) -> None:
    """Raise NotAllowed without a team, Conflict where its runs had too many fetched. Delete old failures first."""
    if team is None:
        raise NotAllowed(f"{web.DISTRIBUTION} {version} is fetched once a block that this node holds names it.")
    late = timezone.now() - FORGOTTEN_AFTER
    WebRuntime.objects.filter(state=MakingState.FAILED, finished_at__lt=late).exclude(version__in=web.RELEASES).delete()
    if WebRuntime.objects.filter(team=team).exclude(version__in=web.RELEASES).count() >= MAX_RELEASES_OF_TEAM:
        raise Conflict(
            f"Runs of team “{team.name}” had {MAX_RELEASES_OF_TEAM} releases of {web.DISTRIBUTION} fetched that this "
            f"farm does not know by itself; {version} is not fetched too. An admin can remove those that are not used."
        )


def list_npm_releases() -> dict[str, str]:
    """Ask npm for the releases and dated builds of ONNX Runtime Web that browsers can load.

    Return by version the reason why it is deprecated, empty where it is not. Raises npm.NpmError where npm does not
    answer or has no list of versions.
    """
    offered = npm.list_versions(web.DISTRIBUTION, registry=settings.NPM_REGISTRY)
    return {
        version: reason
        for version, reason in offered.items()
        if web.is_release(version) and web.too_old_sentence(version) is None
    }


def find_web_runtime_file(sha256: str) -> Path:
    """Return the path of a file of a fetched release.

    Raises Missing where there is none with this sha256, and Away where the bucket does not answer.
    """
    fetched = WebRuntime.objects.filter(state=MakingState.READY).values_list("files_json", flat=True)
    if any(file["sha256"] == sha256 for files in fetched for file in files):
        path = storage.fetch_blob(team_id=storage.OF_THE_FARM, sha256=sha256)
        if path.is_file():
            return path
    raise Missing(f"No runtime of browsers here has a file {sha256[:12]}….")


def fetch_web_runtime(row_id: int) -> None:
    make_claimed_row(WebRuntime.objects.filter(pk=row_id).first(), _fetch_files)


def _fetch_files(row: WebRuntime) -> None:
    release = npm.find_release(web.DISTRIBUTION, row.version, registry=settings.NPM_REGISTRY)
    with make_work_folder() as folder:
        packed, out = folder / "packed", folder / "out"
        packed.mkdir()
        out.mkdir()
        storage.check_free_space(bytes_wanted=npm.MAX_PACKED_BYTES)
        npm.download_release(release, packed / PACKAGE)
        unpacked = orders.unpack_package(packed, PACKAGE, names=web.list_files(row.version), out_dir=out)
        files = tuple(_store_file(path) for path in unpacked)
        if (sentence := web.mismatch_sentence(row.version, _digests(files))) is not None:
            raise npm.NpmError(sentence)
        row.integrity = release.integrity[:200]
        row.files_json = [file.model_dump(mode="json") for file in files]


def _digests(files: Iterable[FileRef]) -> dict[str, str]:
    return {file.name: file.sha256 for file in files}


def _store_file(path: Path) -> FileRef:
    draft = storage.copy_to_draft(path)
    try:
        draft.keep(team_id=storage.OF_THE_FARM)
    finally:
        draft.discard()
    return FileRef(name=path.name, sha256=draft.sha256, bytes=draft.bytes)

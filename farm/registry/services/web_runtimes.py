"""ONNX Runtime Web for browsers that are nodes: fetched from npm by a `prepare` worker, unpacked confined, kept."""

from pathlib import Path
from typing import Final

from django.conf import settings

from farm.accounts.refusals import Conflict, Missing
from farm.contract.cells import FileRef
from farm.registry import npm, storage
from farm.registry.models import WebRuntime
from farm.registry.services.pending_rows import carry_out
from farm.registry.services.products import ensure_web_runtime
from farm.registry.states import MakingState
from farm.registry.workbench import bench
from farm.rules.runtimes import web
from farm.workshop import orders

PACKAGE: Final = "package.tgz"
# a node could ask for any number
MOST_RELEASES: Final = 100


def web_runtime(version: str) -> WebRuntime:
    """The release, ordered where nobody has asked for it before; `files` are there once it is ready.

    Raises Missing for what can be no release, Conflict with the sentence where it cannot be had.
    """
    if not web.is_release(version):
        raise Missing(f"{version[:32]!r} is not a release of {web.DISTRIBUTION}: write it like {web.RELEASES[-1]}.")
    if (sentence := web.too_old_sentence(version)) is not None:
        raise Missing(sentence)
    if not WebRuntime.objects.filter(version=version).exists() and WebRuntime.objects.count() >= MOST_RELEASES:
        raise Conflict(f"{MOST_RELEASES} releases of {web.DISTRIBUTION} were asked for here; no other is fetched.")
    row = ensure_web_runtime(version)
    if row.state == MakingState.FAILED:
        raise Conflict(row.reason_text, code=row.reason_code)
    return row


def published_on_npm() -> dict[str, str]:
    """Releases of ONNX Runtime Web, and dated builds, that browsers load; why not, of each that was taken back.

    Raises npm.NpmError.
    """
    offered = npm.versions(web.DISTRIBUTION, registry=settings.NPM_REGISTRY)
    return {
        version: why
        for version, why in offered.items()
        if web.is_release(version) and web.too_old_sentence(version) is None
    }


def web_file(sha256: str) -> Path:
    """Where a file of a fetched release lies. Raises Missing."""
    known = WebRuntime.objects.filter(state=MakingState.READY).values_list("files_json", flat=True)
    if any(file["sha256"] == sha256 for files in known for file in files):
        path = storage.fetched(team_id=storage.OF_THE_FARM, sha256=sha256)
        if path.is_file():
            return path
    raise Missing(f"No runtime of browsers here has a file {sha256[:12]}….")


def fetch_web_runtime(row_id: int) -> None:
    """Fetches a release; a second message for the same row does nothing."""
    carry_out(WebRuntime.objects.filter(pk=row_id).first(), _fetch)


def _fetch(row: WebRuntime) -> None:
    release = npm.find(web.DISTRIBUTION, row.version, registry=settings.NPM_REGISTRY)
    with bench() as folder:
        packed, out = folder / "packed", folder / "out"
        packed.mkdir()
        out.mkdir()
        storage.check_room(bytes_wanted=npm.MOST_PACKED_BYTES)
        npm.fetch(release, packed / PACKAGE)
        unpacked = orders.unpack_package(packed, PACKAGE, names=web.files_of(row.version), out_dir=out)
        row.integrity = release.integrity[:200]
        row.files_json = [_kept(path).model_dump(mode="json") for path in unpacked]


def _kept(path: Path) -> FileRef:
    draft = storage.draft_of(path)
    try:
        draft.keep(team_id=storage.OF_THE_FARM)
    finally:
        draft.discard()
    return FileRef(name=path.name, sha256=draft.sha256, bytes=draft.bytes)

"""The graph of a version for a picture of it."""

import mmap

from farm.accounts.refusals import Conflict, Missing, TooLarge
from farm.registry import storage
from farm.registry.models import Version
from farm.registry.states import VersionState
from farm.rules.outlines import outline

# what a browser can still lay out; a graph of 20,000 nodes has some 5 MB
LARGEST_OUTLINE = 64 * 1024**2


def outline_of(version: Version) -> bytes:
    """The version's `.onnx` without its large tensors: what a picture of its graph needs.

    Raises Conflict before inspection has accepted it, TooLarge for a graph that no page could draw, Missing when the
    file is not stored any more.
    """
    if version.state != VersionState.READY:
        raise Conflict(f"{version} is {version.state}; its graph is drawn once it is inspected.", code="not_inspected")
    artifact = version.artifact
    main = next(file for file in artifact.files.all() if file.name == artifact.main)
    path = storage.fetched(team_id=artifact.team_id, sha256=main.blob.sha256)
    if not path.is_file() or not path.stat().st_size:
        raise Missing(f"The file {artifact.main} of {version} is not stored any more.")
    with path.open("rb") as file:
        # read page by page as the graph is walked: weights are never touched
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        found = outline(memoryview(mapped))
    except ValueError as problem:
        raise Conflict(f"The graph of {version} cannot be read: {problem}.", code="no_graph") from None
    if len(found) > LARGEST_OUTLINE:
        raise TooLarge(f"The graph of {version} has {len(found):,} bytes without its weights: too large to be drawn.")
    return found

"""A digest has one name wherever it stands: that of the bundle, and that of the model file."""

import re

from django.test import Client

from farm.accounts.models import User
from farm.fleet.models import Node
from farm.registry.models import Blob, Version
from farm.runs.services.share_links import share
from tests.integration.dashboard import rows
from tests.integration.dashboard.pages import assert_is_page

FILE = "f11e" * 16
NAMED = re.compile(r"(\S+(?: file)?) digest (?:equal )?([0-9a-f]{12})")
BOTH = {("Bundle", "b1d7e9" * 2), ("Model file", FILE[:12])}


def named(client: Client, path: str) -> set[tuple[str, str]]:
    """Each digest of a page with its name."""
    return set(NAMED.findall(assert_is_page(client.get(path))))


def test_the_bundle_and_the_model_file_have_a_digest_each_and_every_page_calls_them_so(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    version.artifact.sha256 = "b1d7e9" * 10 + "b1d7"
    version.artifact.save()
    Blob.objects.update(sha256=FILE)
    version.inspection = {**rows.INSPECTION, "main_sha256": FILE}
    version.save()
    run = rows.begin_run(version, owner, matrix={"matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1]}})
    model_file = {("Model file", FILE[:12])}
    # while it waits, while it is measured, and at its end
    assert named(signed_in, f"/runs/{run.pk}/") == model_file
    assert named(signed_in, f"/runs/{run.pk}/cells/c1/") == model_file
    rows.MadeUpNode(node).measure(run)
    assert named(signed_in, f"/runs/{run.pk}/") == model_file
    assert named(signed_in, f"/runs/{run.pk}/cells/c1/") == model_file
    assert named(signed_in, f"/compare/?cells={run.pk}:c1&cells={run.pk}:c2&every=yes") == model_file
    assert named(signed_in, f"/models/{version.model_id}/") == BOTH
    _, url = share(kind="model", subject=str(version.model_id), by=owner)
    assert named(Client(), url[url.index("/shared/") :]) == BOTH

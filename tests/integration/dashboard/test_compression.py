"""What pages are made of is compressed for those who take it, and nothing else is."""

import gzip

import pytest
from django.test import Client

from farm.runs.models import Run

SCRIPT = "dashboard/js/charts.js"


def read(client: Client, path: str, **takes: str) -> tuple[dict[str, str], bytes]:
    """Headers and body; a file is closed once it was read."""
    answer = client.get(path, headers=takes)
    return dict(answer.headers), answer.getvalue()


@pytest.mark.parametrize("path", ["/", f"/static/{SCRIPT}", "/static/dashboard/farm.css", "/static/dashboard/mark.svg"])
def test_pages_styles_scripts_and_pictures_are_compressed_for_who_takes_it(signed_in: Client, path: str) -> None:
    plain, whole = read(signed_in, path, accept_encoding="identity")
    packed, body = read(signed_in, path, accept_encoding="gzip, br")
    assert "Content-Encoding" not in plain
    assert packed["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in plain["Vary"]
    assert "Accept-Encoding" in packed["Vary"]
    # each page has its own token against forged requests
    assert path == "/" or gzip.decompress(body) == whole


def test_what_programs_read_and_what_did_not_change_goes_as_it_is(signed_in: Client, run: Run) -> None:
    for path in (f"/api/v1/runs/{run.pk}/results", f"/api/v1/runs/{run.pk}/results.csv"):
        assert "Content-Encoding" not in read(signed_in, path, accept_encoding="gzip")[0], path
    known = read(signed_in, f"/static/{SCRIPT}", accept_encoding="gzip")[0]["Last-Modified"]
    again, body = read(signed_in, f"/static/{SCRIPT}", accept_encoding="gzip", if_modified_since=known)
    assert body == b""
    assert "Content-Encoding" not in again

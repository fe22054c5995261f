"""Trends, and a model's series and badge."""

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.alerts.models import Point, Watch, WatchRound
from farm.fleet.models import Node
from farm.registry.models import Model, Version
from tests.integration.alerts.driving import labelled, make_watch
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, table_rows

pytestmark = pytest.mark.django_db


def test_without_a_watch_or_a_value_the_next_step_is_said(signed_in: Client, version: Version, owner: User) -> None:
    assert "No watches yet" in assert_is_page(signed_in.get("/trends/"))
    make_watch(version, owner)
    words = assert_is_page(signed_in.get("/trends/"))
    assert "upgrades has no data yet" in words
    assert "No data yet: the first round" in words


def test_a_series_shows_its_level_shift_and_its_alert(signed_in: Client, watch: Watch, version: Version) -> None:
    watching.long_series(watch, version, 60, step_at=40)
    at = WatchRound.objects.order_by("pk")[40]
    alert = watching.bare_alert(watch, version, bad="1.31.1", round=at)
    for address in (
        "/trends/",
        f"/trends/?watch={watch.pk}&by=release",
        f"/trends/?watch={watch.pk}&series=s1@bench-1",
    ):
        response = signed_in.get(address)
        words = assert_is_page(response)
        assert "1.31.1 against 1.29.0: 24 % slower" in words
        assert "24 % slower with 1.31.1" in words
        assert f"alert {alert.pk}" in words
        assert 'role="img"' in response.content.decode()
    assert f"/alerts/{alert.pk}/" in signed_in.get("/trends/").content.decode()


def test_one_series_is_named_and_listed_alone(signed_in: Client, watch: Watch, version: Version) -> None:
    """Its link showed the series of both nodes."""
    watching.long_series(watch, version, 3, step_at=0)
    for point in list(Point.objects.all()):
        point.pk, point.node = None, "bench-2"
        point.save()
    (row,) = table_rows(signed_in.get(f"/trends/?watch={watch.pk}&series=s1@bench-2"), "trends")
    assert row[1] == "bench-2"
    assert "2 series" not in assert_is_page(signed_in.get(f"/trends/?watch={watch.pk}&series=s1@bench-2"))


def test_a_row_stands_as_its_round_does(signed_in: Client, watch: Watch, version: Version) -> None:
    watching.long_series(watch, version, 1, step_at=0)
    address = f"/trends/?watch={watch.pk}"
    assert "▲ slower" in assert_is_page(signed_in.get(address))
    WatchRound.objects.update(outcome="undecided")
    Point.objects.update(at=timezone.now())
    words = assert_is_page(signed_in.get(address))
    assert words.count("? undecided") == 4
    assert "no change" not in words
    # the key of the colours alone
    assert words.count("▲ slower") == 1


def test_a_headline_is_never_of_a_release_against_itself(signed_in: Client, watch: Watch, version: Version) -> None:
    watching.long_series(watch, version, 1, step_at=0)
    WatchRound.objects.update(new="1.23.0")
    Point.objects.update(runtime="onnxruntime==1.23.0")
    assert "1.23.0 against 1.29.0: 24 % slower" in assert_is_page(signed_in.get("/trends/"))


def test_a_trend_is_of_the_metric_that_is_chosen(signed_in: Client, watch: Watch, version: Version) -> None:
    watching.long_series(watch, version, 6, step_at=3)
    assert "Metric" not in assert_is_page(signed_in.get(f"/trends/?watch={watch.pk}"))
    told = {"max_rate_per_s": [0.5, 0.45, 0.55], "peak_memory_bytes": [2.0, 2.0, 2.0]}
    Point.objects.filter(pk__in=list(Point.objects.order_by("pk").values_list("pk", flat=True)[3:])).update(
        metrics=told
    )
    body = signed_in.get(f"/trends/?watch={watch.pk}").content.decode()
    assert '<option value="max_rate_per_s">highest rate</option>' in body
    words = assert_is_page(signed_in.get(f"/trends/?watch={watch.pk}&metric=max_rate_per_s"))
    assert "1.31.1 against 1.29.0: 2.0" in words or "1.31.1 against 1.29.0: 50" in words
    assert "lower" in words
    values = signed_in.get(f"/trends/?watch={watch.pk}&metric=max_rate_per_s&as=json").json()
    assert {value["verdict"] for value in values} == {"lower"}
    assert "against 1.29.0: " in assert_is_page(signed_in.get(f"/trends/?watch={watch.pk}&metric=nothing"))


def test_a_page_of_many_points_takes_few_queries(signed_in: Client, watch: Watch, version: Version) -> None:
    watching.long_series(watch, version, 400, step_at=200)
    with CaptureQueriesContext(connection) as captured:
        response = signed_in.get("/trends/")
    assert len(captured) <= 15
    assert len(response.content) < 150_000


@pytest.mark.parametrize("wanted", ["999", "x", "9" * 30])
def test_an_unknown_watch_is_a_helpful_404_or_the_first_one(signed_in: Client, watch: Watch, wanted: str) -> None:
    response = signed_in.get(f"/trends/?watch={wanted}")
    assert_is_page(response, 404 if wanted == "999" else 200)


def test_a_stranger_sees_no_series(stranger: User, watch: Watch, version: Version) -> None:
    watching.long_series(watch, version, 6, step_at=3)
    client = client_of(stranger)
    assert "encoder" not in assert_is_page(client.get("/trends/"))
    assert_is_page(client.get(f"/trends/?watch={watch.pk}"), 404)


def test_models_by_releases_lead_and_each_cell_opens_its_series(
    signed_in: Client, watch: Watch, version: Version, owner: User, team: Team
) -> None:
    other = rows.make_version(team, owner, name="decoder")
    watching.long_series(watch, version, 6, step_at=3)
    watching.long_series(watch, other, 6, step_at=6, series="s2")
    response = signed_in.get("/trends/")
    words, text = assert_is_page(response), response.content.decode()
    assert re.search(r"encoder is 2[345](\.\d)? % slower with 1\.31\.1 1 of 1 model slower or wrong", words)
    heat = text[text.index('class="heat') : text.index("</table>")]
    assert heat.index("encoder") < heat.index("decoder")
    assert f"/trends/?watch={watch.pk}&amp;series=s1%40bench-1" in heat
    assert "not measured" in heat
    chosen = signed_in.get(f"/trends/?watch={watch.pk}&series=s1%40bench-1")
    assert 'class="heat' not in chosen.content.decode()
    # wrong outputs are never praised, and lead
    alert = watching.bare_alert(watch, other, bad="1.30.0")
    alert.symptoms.update(kind="parity", size=None)
    watching.long_series(watch, version, 6, step_at=6, series="s3")
    assert "✕ wrong outputs" in assert_is_page(signed_in.get("/trends/"))
    # two models of one name are two rows
    Model.objects.filter(pk=other.model_id).update(name="encoder", team=Team.objects.create(name="b"))
    watching.long_series(watch, version, 1, step_at=1, series="s4")
    heat = signed_in.get("/trends/").content.decode().partition('class="heat')[2].partition("</table>")[0]
    assert heat.count('<th scope="row">encoder</th>') == 2


# a model's own page


def test_a_model_shows_its_series_and_its_badge(signed_in: Client, watch: Watch, version: Version) -> None:
    watching.long_series(watch, version, 60, step_at=40)
    at = WatchRound.objects.order_by("pk")[40]
    alert = watching.bare_alert(watch, version, bad="1.31.1", round=at)
    response = signed_in.get(f"/models/{version.model_id}/")
    words, text = assert_is_page(response), html.unescape(response.content.decode())
    assert "24 % slower with 1.31.1" in words
    assert f"alert {alert.pk}" in words
    assert "<polyline" in text
    badge = re.search(r'<img src="(/api/v1/badges/[^"]+\.svg)" alt="([^"]+)"', text)
    assert badge[2] == "onnxruntime: slower between 1.29.0 and 1.31.1"
    assert f"({badge[1]})" in text.replace("http://127.0.0.1:8000", "")
    image = Client().get(badge[1])
    assert image["Content-Type"].startswith("image/svg+xml")
    assert "slower between 1.29.0 and 1.31.1" in image.content.decode()
    assert Client().get(badge[1].replace(".svg", "0.svg")).status_code == 404


def test_a_model_that_nobody_watches_says_how_to_by_a_name_that_no_watch_has(
    signed_in: Client, version: Version, owner: User
) -> None:
    for name in ("upgrades", "upgrades-2", "upgrades-3"):
        response = signed_in.get(f"/models/{version.model_id}/")
        assert "No watch covers this model" in assert_is_page(response)
        assert f"onnxfarm watch add {name} --model {version.model_id}" in response.content.decode()
        make_watch(version, owner, name=name, watched=[], label="of others")


def test_a_model_is_watched_by_its_label_too(signed_in: Client, version: Version, owner: User, node: Node) -> None:
    labelled(version.model, "vision")
    make_watch(version, owner, name="by label", watched=[], label="vision")
    words = assert_is_page(signed_in.get(f"/models/{version.model_id}/"))
    assert "by label against onnxruntime 1.29.0" in words
    assert "No data yet" in words

"""The matrix as a form beside its text: either changes the other, and nothing starts that only one of them says."""

import html
import re

import pytest
from django.test import Client

from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from tests.integration.dashboard.pages import assert_is_page, words_of
from tests.responses import Response

pytestmark = pytest.mark.django_db
TEXT = "budget: quick\nmatrix:\n  runtime: [1.29.0, 1.31.1]\n  provider: [cpu]\n  batch: [1, 8]\n"


def fields_of(response: Response) -> dict[str, str]:
    """What the fields hold; those that cannot be typed into are left out."""
    found = re.findall(r'<input name="(axis-[a-z]+)"[^>]*value="([^"]*)" placeholder', response.content.decode())
    return {name: html.unescape(value) for name, value in found}


def text_of(response: Response) -> str:
    found = re.search(r'<textarea name="matrix"[^>]*>(.*?)</textarea>', response.content.decode(), re.DOTALL)
    return html.unescape(found[1])


def plan(client: Client, version: Version, touched: str, text: str, **fields: str) -> Response:
    given = {"version": version.pk, "matrix": text, **{f"axis-{name}": value for name, value in fields.items()}}
    return client.post("/runs/plan/", given, headers={"hx-request": "true", "hx-trigger-name": touched})


def test_the_page_shows_the_same_matrix_as_form_and_as_text(signed_in: Client, version: Version, node: Node) -> None:
    response = signed_in.get("/runs/new/?preset=precisions")
    assert_is_page(response)
    fields = fields_of(response)
    assert (fields["axis-runtime"], fields["axis-provider"]) == ("1.31.1", "cpu")
    assert fields["axis-precision"] == "fp32, fp16, int8-dynamic, int8-qdq, int8-qdq:per-channel, int8-qoperator"
    assert fields["axis-opset"] == ""


def test_text_that_is_typed_moves_the_fields_and_leaves_the_text_alone(signed_in: Client, version: Version, node: Node):
    response = plan(signed_in, version, "matrix", TEXT)
    assert fields_of(response)["axis-batch"] == "1, 8"
    assert 'id="fields" hx-swap-oob="true"' in response.content.decode()
    assert "<textarea" not in response.content.decode()
    assert "4 cells in 1 block" in words_of(response)


def test_sizes_are_typed_by_name_and_what_inspection_found_stands_beside_them(
    signed_in: Client, version: Version, node: Node
) -> None:
    response = plan(signed_in, version, "axis-shapes", TEXT, shapes="sequence=64, sequence=128")
    assert "8 cells in 1 block" in words_of(response)
    assert "dynamic (batch)" in words_of(response)
    assert 'title="The field Batch sizes says otherwise."' in response.content.decode()
    read = plan(signed_in, version, "matrix", text_of(response))
    assert fields_of(read)["axis-shapes"] == "sequence=64, sequence=128"
    for typed in ("sequence", "sequence=many", "=", "sequence=" + "9" * 40, "<script>=1"):
        refused = plan(signed_in, version, "axis-shapes", TEXT, shapes=typed)
        assert refused.status_code == 200
        assert "cells in" not in words_of(refused)
        assert "<script>=" not in refused.content.decode()


def test_a_start_that_is_not_possible_says_why(signed_in: Client, version: Version, node: Node) -> None:
    text = plan(signed_in, version, "matrix", "matrix: [").content.decode()
    assert re.search(r'<button class="primary" disabled aria-describedby="plan-says">Start', text)
    assert 'id="plan-says"' in text


def test_a_field_that_is_typed_into_rewrites_the_text_and_leaves_the_fields_alone(
    signed_in: Client, version: Version, node: Node
) -> None:
    response = plan(signed_in, version, "axis-batch", TEXT, batch="1, 8,16,")
    assert "batch: [1, 8, 16]" in text_of(response)
    assert "6 cells in 1 block" in words_of(response)
    assert fields_of(response) == {}
    response = plan(signed_in, version, "axis-precision", text_of(response), precision="fp32, int8-qdq:per-channel")
    assert "int8-qdq" in text_of(response)
    response = plan(signed_in, version, "axis-batch", text_of(response), batch=" ")
    assert "batch" not in text_of(response)
    response = plan(signed_in, version, "axis-budget", text_of(response), budget="precise")
    assert "budget: precise" in text_of(response)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("batch", "eight", "eight"),
        ("provider", "cup", "cpu"),
        ("precision", "int9", "int9"),
        ("budget", "cheap", "cheap"),
    ],
)
def test_a_field_that_cannot_be_read_says_what_is_wrong_and_changes_nothing(
    signed_in: Client, version: Version, node: Node, name: str, value: str, said: str
) -> None:
    response = plan(signed_in, version, f"axis-{name}", TEXT, **{name: value})
    assert said in words_of(response)
    text = response.content.decode()
    assert '<button class="primary" disabled ' in text
    assert "<textarea" not in text


def test_a_field_no_axis_has_and_a_text_nobody_can_read_are_no_errors_of_ours(
    signed_in: Client, version: Version, node: Node
) -> None:
    assert plan(signed_in, version, "axis-nonsense", TEXT, nonsense="1").status_code == 200
    response = plan(signed_in, version, "axis-batch", "matrix: [", batch="1")
    assert response.status_code == 200
    assert "disabled" in response.content.decode()


def test_values_with_options_of_their_own_are_left_to_the_text(signed_in: Client, version: Version, node: Node) -> None:
    text = "runtime: [onnxruntime-openvino==1.24.1]\nprovider: [{name: openvino, options: {num_of_threads: '1'}}]\n"
    fields = fields_of(plan(signed_in, version, "matrix", text))
    assert fields["axis-runtime"] == "onnxruntime-openvino==1.24.1"
    assert "axis-provider" not in fields


def test_nothing_starts_while_form_and_text_differ(signed_in: Client, version: Version, node: Node) -> None:
    given = {"version": version.pk, "matrix": TEXT, "seed": "0"}
    response = signed_in.post("/runs/new/", {**given, "axis-batch": "1, 8, 16"})
    assert "The form and the text did not match" in assert_is_page(response, 400)
    assert fields_of(response)["axis-batch"] == "1, 8"
    assert not Run.objects.exists()
    response = signed_in.post("/runs/new/", {**given, "axis-batch": "1,8", "axis-runtime": "1.29.0, 1.31.1"})
    assert response.status_code == 302
    assert Run.objects.count() == 1

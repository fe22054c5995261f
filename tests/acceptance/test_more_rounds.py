"""An undecided block goes on: by `onnxfarm more`, and by one click on the run's page, on a farm with a real agent."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.acceptance.conftest import LiveFarm

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]
MODEL = Path(__file__).parents[1] / "models" / "relu_op17_ir8.onnx"
# one release three times, on two threads that others disturb: launches of microseconds are not equal within 2 % soon
SAME = {"budget": "quick", "matrix": {"runtime": ["1.31.1"] * 3, "threads": [2]}}


def undecided(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in document["comparisons"] if one["verdict"] == "undecided"]


def rounds_of(document: dict[str, Any]) -> set[int]:
    return {len(cell["samples_ms"]) for cell in document["cells"]}


def assert_went_on(document: dict[str, Any], *, past: int, to: int) -> None:
    """More rounds were measured: all of them, or as many as the promised time held, which is then said."""
    rounds = rounds_of(document)
    assert min(rounds) > past, rounds
    said = " ".join(one["reason"] or "" for one in document["comparisons"])
    assert rounds == {to} or (max(rounds) <= to and "The time budget" in said), (rounds, said)


def follow(farm: LiveFarm, run: str) -> dict[str, Any]:
    farm.command("status", run, "--wait")
    document: dict[str, Any] = farm.api("GET", f"/runs/{run}/results").json()
    return document


def click_more(farm: LiveFarm, run: str, rounds: int) -> str:
    """What a browser does when somebody clicks "More rounds"; the page that answers."""
    with httpx2.Client(base_url=farm.url, follow_redirects=True, timeout=60) as browser:
        farm.sign_in(browser)
        page = browser.get(f"/runs/{run}/")
        form = re.search(rf'<form method="post" action="(/runs/{run}/more/)".*?</form>', page.text, re.DOTALL)
        assert form, "the page of a finished run offers more rounds"
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form[0])
        assert token
        answer = browser.post(
            form[1],
            data={"csrfmiddlewaretoken": token[1], "rounds": str(rounds)},
            headers={"Referer": f"{farm.url}/runs/{run}/"},
        )
        assert answer.status_code == 200, answer.text
        return answer.text


def test_an_undecided_block_goes_on_where_it_was_begun(farm: LiveFarm) -> None:
    first = farm.submit(MODEL, SAME)
    run = str(first["run"])
    assert rounds_of(first) == {8}
    if not undecided(first):
        pytest.skip("Every pair of the same release was decided in 8 rounds: there is nothing to go on with.")

    said = farm.command("more", run, "--rounds", "4").stderr
    # queued until the node has taken the block again
    assert f"Run {run}: queued" in said or f"Run {run}: running" in said
    second = follow(farm, run)
    assert_went_on(second, past=8, to=12)
    for before, after in zip(first["cells"], second["cells"], strict=True):
        assert after["samples_ms"][:8] == before["samples_ms"], "what was measured stays"
        assert after["node"] == before["node"]
    for before, after in zip(first["comparisons"], second["comparisons"], strict=True):
        is_continued = before["verdict"] == "undecided"
        assert after["rounds"] in (range(9, 13) if is_continued else [before["rounds"]])
    texts = [event["text"] for event in farm.api("GET", f"/runs/{run}/events").json()]
    assert any("asked for 4 more rounds" in text for text in texts)
    if not undecided(second):
        pytest.skip("More rounds decided every pair: there is nothing left to click for.")

    assert "4 more rounds were queued." in click_more(farm, run, 4)
    third = follow(farm, run)
    measured = max(rounds_of(second))
    assert_went_on(third, past=min(rounds_of(second)), to=measured + 4)
    for before, after in zip(second["cells"], third["cells"], strict=True):
        assert after["samples_ms"][: len(before["samples_ms"])] == before["samples_ms"], "what was measured stays"


def test_a_run_without_anything_to_continue_says_so(farm: LiveFarm) -> None:
    run = farm.start_run(MODEL, {"budget": "quick", "matrix": {"runtime": ["1.31.1"], "threads": [2]}})
    farm.command("cancel", run)
    assert farm.command("more", run, check=False).returncode == 2

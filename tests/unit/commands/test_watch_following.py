"""`watch run --wait` says how far the run of its round is, as `submit --wait` does."""

from collections.abc import Iterator

import pytest

from farm.contract.api.alerts import RoundOut
from farm.contract.api.runs import ProgressOut, RunOut
from onnxfarm.commands import watch
from onnxfarm.remote.client import ApiAnswer
from tests.answers import answer, plain


class Farm:
    """A farm whose one round waits, is measured by run 3, shown again by run 4, and judged; hostile in its words."""

    def __init__(self) -> None:
        self.steps = iter([("waiting", {}), ("measuring", {"run": 3}), ("confirming", {"run": 3, "confirming": 4})])
        self.asked: list[int] = []

    def iterate_pages(self, operation: object, *, watch: int) -> Iterator[ApiAnswer[list[RoundOut]]]:
        state, runs = next(self.steps, ("judged", {"run": 3}))
        sentence = "[red]14 %[/red] slower" if state == "judged" else ""
        found = answer(RoundOut, id=1, state=state, sentence=sentence, **runs)
        yield ApiAnswer([found.model_dump()], [found])

    def call(self, operation: object, *, run: int) -> RunOut:
        self.asked.append(run)
        block = "1 of 1 block being measured, 3 of 8 rounds"
        progress = plain(ProgressOut, cells={"open": 2}, block=block, minutes_left=0.5)
        return answer(RunOut, id=run, state="running", progress=progress)


def test_a_watch_that_is_waited_for_says_how_far_its_run_is(capsys: pytest.CaptureFixture[str]) -> None:
    farm = Farm()
    watch._follow_rounds(farm, 1, {1}, minutes=None, poll_s=0.0)
    assert farm.asked == [3, 4]
    assert capsys.readouterr().err.splitlines() == [
        "Round 1: waiting",
        "Round 1: measuring",
        "0 of 2 cells ended, 1 of 1 block being measured, 3 of 8 rounds, time left: about 30 s",
        "Round 1: confirming",
        "Round 1: judged: [red]14 %[/red] slower",
    ]

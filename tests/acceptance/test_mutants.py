"""A few mutants of real models through a whole farm; `python -m tests.bench.mutants` sends thousands."""

import pytest

from tests.acceptance.conftest import LiveFarm
from tests.bench.mutants import BLOCKED_S, Prober, Trial, every_mutant, figures_of

MUTANTS = 60


@pytest.mark.long
def test_each_mutant_is_told_in_words_and_the_web_server_stays_at_hand(farm: LiveFarm) -> None:
    prober = Prober(farm.url, farm.token)
    trial = Trial(farm.url, farm.token, seed=7)
    sent = trial.run(every_mutant(MUTANTS // 2, MUTANTS // 2), seconds=60)
    prober.stop()
    found = figures_of(trial, prober)
    assert sent == sum(trial.verdicts.values()) == MUTANTS, found
    assert found["without_words"] == []
    assert found["web_failures"] == 0, found
    assert found["web_longest_answer_s"] < BLOCKED_S, found
    # mutants, not garbage and not copies: some are still models and some are not
    assert trial.verdicts["ready"] > 0, found
    assert trial.verdicts["rejected"] > 0, found

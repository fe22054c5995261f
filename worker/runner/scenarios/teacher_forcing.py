"""Teacher forcing: keeps a decoder's scores at places of a given text, whatever tokens it would have chosen.

Two runtimes then score the same text, so that one early difference does not end the comparison.
"""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from worker.runner import faults
from worker.runner.order import Call
from worker.runner.parity import Array
from worker.runner.scenarios import prompts
from worker.runner.scenarios.decoder_ports import Steps

# the number of places in the text, beginning at the end of the prompt, and of tokens whose scores are kept at each
PLACES, PROBES = 8, 64


class TeacherForcing:
    """Keeps scores of the first sequence for some tokens, which the seed draws, the same for every runtime.

    `places` are the numbers of the steps, from 0, whose scores are kept. `keep_scores` takes those of the next place,
    [vocabulary].
    """

    def __init__(self, settings: Mapping[str, Any], *, vocabulary: int) -> None:
        self._settings, self._vocabulary = settings, vocabulary
        new = int(settings["new"])
        self.places = np.unique(np.linspace(0, new - 1, min(PLACES, new)).astype(int)).tolist()
        dice = np.random.default_rng(np.random.SeedSequence([int(settings["seed"]) % 2**32, 0x9085]))
        self._probes = np.sort(dice.choice(vocabulary, min(PROBES, vocabulary), replace=False))
        self._scores: list[Array] = []

    def run(self, calls: list[Call], steps: Steps) -> None:
        """Run each step once, and keep the scores at `places`. Raises a Refusal that names the step that failed."""
        forced_tokens = prompts.draw_forced_tokens(self._settings, vocabulary=self._vocabulary)
        for number, call in enumerate(calls):
            self._step(call, number)
            if number in self.places:
                self.keep_scores(steps.scores[min(number, 1)][0])
            steps.token[:, 0] = forced_tokens[number]

    def keep_scores(self, scores: Array) -> None:
        self._scores.append(scores[self._probes].astype(np.float32))

    @property
    def answer(self) -> dict[str, object]:
        """The fields of ForcedScores: the places, and the scores of all probes as base64 of little-endian float32."""
        scores = np.array(self._scores, dtype="<f4")
        return {"places": self.places, "scores": base64.b64encode(scores.tobytes()).decode()}

    def _step(self, call: Call, number: int) -> None:
        try:
            call()
        except Exception as error:
            code, text = faults.explain_error(error, during="run")
            prompt, new = int(self._settings["prompt"]), int(self._settings["new"])
            place = f"token {number + 1} of {new}, behind {prompt + number - 1:,} others"
            raise faults.Refusal(code, f"the model refused {place}: {text}") from error

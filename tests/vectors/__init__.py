"""What both runners make of the same: worker/runner in Python, worker/tab in JavaScript.

A file a subject. `windows`: how many inferences of a launch took how many milliseconds, and the last one repeats;
`parity`: an output and its reference, as lists whose NaN, infinities and numbers beyond 2^53 are texts; `profile`: the
events of a trace.
What they have to find stands beside each case.
"""

import json
from pathlib import Path
from typing import Any

SUBJECTS = ("windows", "parity", "profile")


def read(subject: str) -> list[dict[str, Any]]:
    """The cases of a subject, each with a `name`."""
    cases: list[dict[str, Any]] = json.loads((Path(__file__).parent / f"{subject}.json").read_text("utf-8"))
    return cases


def accuracies() -> dict[str, Any]:
    """Texts and boxes beside what well-kept libraries say of them; make_accuracies.py says which, and made them."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "accuracies.json").read_text("utf-8"))
    return found
